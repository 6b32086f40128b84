"""The ground: two-word numbers, precisions, Boys function, Hermite expansions."""
