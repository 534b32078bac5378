"""The Agent Client Protocol: agents of others here (`client`), and our agent in other editors."""
