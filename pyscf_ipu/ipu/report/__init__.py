"""What people see of a profile: text, a page, a trace, a comparison of two."""
