"""Correlation, resampling, significance, agreement, regression, variances, study plans."""
