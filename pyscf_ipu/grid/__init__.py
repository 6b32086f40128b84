"""The numerical grid: blocks of points, their weights, AO values on them, the XC matrix."""
