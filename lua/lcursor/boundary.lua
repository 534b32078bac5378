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
  { "AGE-SECRET-KEY-1", "AGE%-SECRET%-KEY%-1" .. ("[%u%d]"):rep(8) .. "" },
  { "\"kty\"", "\"d\"%s*:%s*\"" .. ("[%w_%-]"):rep(32) .. "" },
  { "PrivateKey", "PrivateKey%s*=%s*" .. ("[%w_+/]"):rep(43) .. "=" },
  { "UFJJVkFURSBLRV", "" .. ("[%w+/]"):rep(8) .. "UFJJVkFURSBLRV" },
  { "BSSVZBVEUgS0VZ", "" .. ("[%w+/]"):rep(8) .. "BSSVZBVEUgS0VZ" },
  { "QUklWQVRFIEtFW", "" .. ("[%w+/]"):rep(8) .. "QUklWQVRFIEtFW" },
}

return M
