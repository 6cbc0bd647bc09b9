"""From equations to rows."""
