-- Generated from lcursor/project/git.py by `make docs`: do not edit.
-- How to start git so that it runs no program that a repository names.

local M = {}

-- stylua: ignore
M.git = {
  "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c",
  "core.alternateRefsCommand=:", "-c", "core.sshCommand=false", "-c", "core.askPass=false", "-c",
  "core.pager=cat", "-c", "core.editor=false", "-c", "credential.helper=", "-c",
  "gpg.program=false", "-c", "gpg.ssh.program=false", "-c", "gpg.x509.program=false", "-c",
  "gpg.ssh.defaultKeyCommand=", "-c", "log.showSignature=false", "-c", "protocol.allow=never",
  "-c", "safe.bareRepository=explicit", "-c", "submodule.recurse=false", "-c",
  "core.quotePath=false", "--no-pager",
}

M.git_environment = {
  GIT_ALLOW_PROTOCOL = "none",
  GIT_NO_LAZY_FETCH = "1",
  GIT_OPTIONAL_LOCKS = "0",
  GIT_TERMINAL_PROMPT = "0",
  GIT_PAGER = "cat",
  LC_ALL = "C",
}

-- Variables of git that are passed on; the others may be meant for another repository.
-- stylua: ignore
M.git_inherited = { "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM" }

return M
