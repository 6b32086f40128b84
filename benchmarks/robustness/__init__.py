"""The dataset generator under hostile input, killed, and on a full disk."""
