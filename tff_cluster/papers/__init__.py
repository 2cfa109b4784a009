"""What the papers print: tables and figures, and which experiment each of their rows stands for. Plain data."""
