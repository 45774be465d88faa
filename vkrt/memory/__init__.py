"""Where weights come from and the host memory they pass through."""
