"""What a gym accepts and pays, found out by asking and trying before any property is searched."""
