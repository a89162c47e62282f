"""The vectors of one encoder and the nearest of them."""
