"""The engine on tiles: its algorithms for many small memories, and how they are priced."""
