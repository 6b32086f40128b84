"""What all console scripts have in common: how they are read, and where their results go."""
