"""Every command at every file operation: killed there, failed by EIO or ENOSPC, and given again."""
