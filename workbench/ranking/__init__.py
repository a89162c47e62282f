"""Fusion, pure: numpy and the standard library, no input or output."""
