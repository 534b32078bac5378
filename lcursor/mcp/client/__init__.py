"""The client of the Model Context Protocol: tools of servers for agents.

`servers.Servers` is what others use. `helper` is a process of its own, in which `connection` alone
imports the SDK.
"""
