"""The methods by name, and what each can take."""
