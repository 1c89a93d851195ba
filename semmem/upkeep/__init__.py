"""Going through memories when nobody asks: what says the same becomes one, what is over its time goes."""
