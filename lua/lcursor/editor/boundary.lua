-- Generated from lcursor/project/git.py and secrets.py by `make docs`: do not edit.
-- How to start git so that it runs no program that a repository names, and which files
-- hold secrets.

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

-- Beginnings of git's messages that are shown; others may quote a file of the user.
M.git_messages = {
  "fatal: detected dubious ownership",
  "fatal: not a git repository",
  "fatal: Expected git repo version",
  "fatal: unknown repository extension",
  "fatal: bad config line",
}

-- Globs. Without a slash they match the file's name, otherwise the end of its path.
-- stylua: ignore
M.secrets = {
  "{.env,*.env}",
  "{.env,*.env}.*",
  ".env[-_]*",
  "{.envrc,.flaskenv,.dev.vars}",
  "*.{pem,key,p8,p12,pfx,crt,cer,der,jks,keystore,truststore,ppk,pk8,jwt}",
  "*.pem.{txt,bak,old,orig,enc}",
  "*.{gpg,pgp,asc,kdb,kdbx,agekey,ovpn}",
  "{id_rsa,id_dsa,id_ecdsa,id_ed25519}*",
  "ssh_host_{rsa,dsa,ecdsa,ed25519}_key",
  "{deploy,deployment}{_,-}{key,rsa,ed25519}",
  "{.ssh,.gnupg,.password-store,.pki/nssdb}/*",
  "{key,keys}.json",
  "{apikey,api_key,api-key,apikeys,api_keys,api-keys}.{json,txt,yml,yaml,env,ini}",
  "{wg[0-9],wg[0-9][0-9],wireguard,vpn,openvpn}.conf",
  "openvpn.auth",
  "{wallet.dat,mnemonic.txt,seed_phrase.txt,seed-phrase.txt}",
  "keystore/UTC--*",
  "{credentials,.credentials,credential,creds}",
  "{credentials,.credentials,credential}.*",
  "creds.{json,yml,yaml,toml,ini,txt,csv,xml,conf,properties}",
  "*{_,-}credentials.{json,yml,yaml,toml,ini}",
  "{.smbcredentials,.cifs-credentials,.passwd-s3fs,.supabase/access-token}",
  "{accesskeys,*_accesskeys,rootkey}.csv",
  "{client_secret,service-account,service_account}*.json",
  "{firebase-adminsdk,*-firebase-adminsdk}*.json",
  "{gcp-key,google-services,kaggle,logins,sftp-config,settings.local,local.settings}.json",
  "{application_default_credentials.json,googleservice-info.plist}",
  "{.netrc,_netrc,.pgpass,pgpass.conf,.my.cnf,.npmrc,.pypirc,.git-credentials,.htpasswd,htpasswd}",
  "{.yarnrc.yml,.dockercfg,.vault-token,.terraformrc,terraform.rc,auth.json,.boto,.s3cfg}",
  "{.sentryclirc,sentry.properties,.databrickscfg,.condarc,pip.conf,pip.ini,rclone.conf}",
  "{.msmtprc,.fetchmailrc,.muttrc,.offlineimaprc,.mbsyncrc,.ftpconfig,.openai,.anthropic}",
  "{kubeconfig,kubeconfig{.,[-_]*.}{yml,yaml,json,conf},*[-_.]kubeconfig}",
  "{shadow,gshadow,sudoers,master.passwd,known_hosts,authorized_keys,krb5.keytab}",
  "{shadow-,gshadow-,.xauthority,.iceauthority,.lesshst,fish_history}",
  ".{bash,zsh,sh,ksh,psql,mysql,sqlite,python,node_repl,irb,rediscli,dbshell}_history",
  "*.{keytab,tfstate,tfvars,secret,secrets,token,pwd,passwd}",
  "*.{tfstate.*,tfvars.json}",
  "{secret,secrets}",
  "{secret,secrets}{.*,}.{json,json5,jsonc,yaml,yml,toml,env,ini,conf,cfg,config,properties,props}",
  "{secret,secrets}{.*,}.{txt,xml,plist,csv,tsv,bin,dat,db,sqlite,sqlite3,b64,enc,sops,age,vault}",
  "{secret,secrets}{.*,}.{bak,old,orig,local,sh,bash,zsh,fish,ps1,bat,cmd,h}",
  "*{_,-}{secret,secrets}.{txt,yml,yaml}",
  "*{_,-}{token,password,passwords}.txt",
  "{token,tokens}",
  "{token,tokens}.{json,yml,yaml,toml,ini,txt,xml,conf}",
  "{password,passwords}.{txt,csv,json,yml,yaml,xls,xlsx,md}",
  "{.vault_pass,.vault-pass,vault_pass,vault-pass,.vault_password,.vault-password}",
  "{vault_pass,vault-pass,vault_password,vault-password}.{txt,sh}",
  "{vault-password,vault_password,vault.yml,vault.yaml,ansible_vault.yml,ansible-vault.yml}",
  "secrets/*.{yml,yaml}",
  "{.secrets,secrets.d}/*",
  "appsettings.*.json",
  "connectionstrings.config",
  "config/database.yml",
  "{local_settings,settings_local,localsettings}.{py,php}",
  "wp-config.php{.*,}",
  "{.aws,.azure,.gcp,.gcloud,.irssi,.dbt,.snowsql,.kaggle,.huggingface,keyrings}/*",
  "{.kube,.bundle}/config",
  "{.docker,.mc,.railway}/config.json",
  "{.netlify/state,.vercel/auth,.vscode/sftp}.json",
  ".config/{gh,hub,gcloud,op}/*",
  ".config/hub",
  ".cargo/credentials*",
  ".gem/credentials",
  ".cache/huggingface/token",
  "{.m2/settings,settings-security}.xml",
  ".gradle/gradle.properties",
  "{cookies.sqlite,login data,key3.db,key4.db}",
  "{dump,backup}.sql{.*,}",
  "*.{dump,hprof}",
}

-- A path without any of these texts matches none of them.
-- stylua: ignore
M.secret_hints = {
  ".agekey", ".anthropic", ".asc", ".aws/", ".azure/", ".bash_history", ".boto", ".bundle/config",
  ".cer", ".condarc", ".conf", ".crt", ".databrickscfg", ".dbshell_history", ".dbt/", ".der",
  ".dev.vars", ".docker/config.json", ".dockercfg", ".dump", ".env", ".fetchmailrc", ".flaskenv",
  ".ftpconfig", ".gcloud/", ".gcp/", ".gnupg/", ".gpg", ".hprof", ".huggingface/",
  ".iceauthority", ".irb_history", ".irssi/", ".jks", ".jwt", ".kaggle/", ".kdb", ".key",
  ".ksh_history", ".kube/config", ".lesshst", ".m2/settings.xml", ".mbsyncrc", ".mc/config.json",
  ".msmtprc", ".muttrc", ".my.cnf", ".mysql_history", ".netlify/state.json", ".netrc",
  ".node_repl_history", ".npmrc", ".offlineimaprc", ".openai", ".ovpn", ".p12", ".p8", ".passwd",
  ".password-store/", ".pem", ".pfx", ".pgp", ".pk8", ".pki/nssdb/", ".ppk", ".properties",
  ".psql_history", ".pwd", ".pypirc", ".python_history", ".railway/config.json",
  ".rediscli_history", ".s3cfg", ".sentryclirc", ".sh_history", ".snowsql/", ".sqlite3",
  ".sqlite_history", ".ssh/", ".terraformrc", ".tfstate", ".tfvars", ".truststore",
  ".vscode/sftp.json", ".xauthority", ".yarnrc.yml", ".zsh_history", "_netrc", "accesskeys.csv",
  "api-key.ini", "api-key.txt", "api-key.yaml", "api-key.yml", "api-keys.ini", "api-keys.txt",
  "api-keys.yaml", "api-keys.yml", "api_key.ini", "api_key.txt", "api_key.yaml", "api_key.yml",
  "api_keys.ini", "api_keys.txt", "api_keys.yaml", "api_keys.yml", "apikey.ini", "apikey.txt",
  "apikey.yaml", "apikey.yml", "apikeys.ini", "apikeys.txt", "apikeys.yaml", "apikeys.yml",
  "appsettings.", "auth.json", "authorized_keys", "backup.sql", "config/database.yml",
  "cookies.sqlite", "credential", "creds", "deploy-ed25519", "deploy-key", "deploy-rsa",
  "deploy_ed25519", "deploy_key", "deploy_rsa", "deployment-ed25519", "deployment-key",
  "deployment-rsa", "deployment_ed25519", "deployment_key", "deployment_rsa", "dump.sql",
  "firebase-adminsdk", "fish_history", "google-services.json", "googleservice-info.plist",
  "htpasswd", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa", "kaggle.json", "key.json", "key3.db",
  "key4.db", "keyrings/", "keys.json", "keystore/utc--", "known_hosts", "kubeconfig",
  "local.settings.json", "local_settings.php", "local_settings.py", "localsettings.php",
  "localsettings.py", "login data", "logins.json", "mnemonic.txt", "openvpn.auth", "password.csv",
  "password.json", "password.md", "password.txt", "password.xls", "password.yaml", "password.yml",
  "passwords.csv", "passwords.json", "passwords.md", "passwords.txt", "passwords.xls",
  "passwords.yaml", "passwords.yml", "pip.ini", "rootkey.csv", "secret", "seed-phrase.txt",
  "seed_phrase.txt", "service-account", "service_account", "settings-security.xml",
  "settings.local.json", "settings_local.php", "settings_local.py", "sftp-config.json", "shadow",
  "ssh_host_dsa_key", "ssh_host_ecdsa_key", "ssh_host_ed25519_key", "ssh_host_rsa_key", "sudoers",
  "terraform.rc", "token", "vault-pass", "vault.yaml", "vault.yml", "vault_pass", "wallet.dat",
  "wp-config.php",
}

-- Templates, which have names without values.
M.harmless = {
  ".env.{example,sample,template,dist,defaults,schema}",
  "*.env.{example,sample,template,dist}",
  "*.pub",
}

-- Formats of private keys: a text of each, which is searched first, and a pattern.
-- stylua: ignore
M.keys = {
  { "PRIVATE KEY", "%-%-%-%- ?%-?BEGIN [%u%d ]*PRIVATE KEY" },
  { "PuTTY-User-Key-File-", "PuTTY%-User%-Key%-File%-%d" },
  { "AGE-SECRET-KEY-1", "AGE%-SECRET%-KEY%-1" .. ("[%u%d]"):rep(8) },
  { "\"kty\"", "\"d\"%s*:%s*\"" .. ("[%w_%-]"):rep(32) },
  { "PrivateKey", "PrivateKey%s*=%s*" .. ("[%w_+/]"):rep(43) .. "=" },
  { "UFJJVkFURSBLRV", ("[%w+/]"):rep(8) .. "UFJJVkFURSBLRV" },
  { "BSSVZBVEUgS0VZ", ("[%w+/]"):rep(8) .. "BSSVZBVEUgS0VZ" },
  { "QUklWQVRFIEtFW", ("[%w+/]"):rep(8) .. "QUklWQVRFIEtFW" },
}

return M
