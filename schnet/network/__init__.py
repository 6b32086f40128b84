"""The network, packs of molecules, and predictions."""
