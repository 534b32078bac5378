"""What someone wrote, placed: blocks of a reply, found in the text that they are about."""
