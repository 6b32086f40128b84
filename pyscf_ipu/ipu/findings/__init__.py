"""What a profile says: rates and what holds them up, and all of it in the types of JSON."""
