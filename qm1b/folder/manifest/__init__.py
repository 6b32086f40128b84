"""What a folder says of itself in manifest.json: level, input, versions of the software."""
