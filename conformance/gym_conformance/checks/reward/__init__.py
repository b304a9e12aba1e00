"""Whether the reward measures the task, and comes to the same again."""
