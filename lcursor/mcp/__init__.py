"""The Model Context Protocol: tools of servers for agents (`client`), our tools (`server`)."""
