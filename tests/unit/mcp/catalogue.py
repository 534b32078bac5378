"""A hundred tools as servers describe them, and sixty questions for which one of them is right.

The questions were written before the ranking was measured, with the words of a person or a model
that has a task, not with those of the descriptions.
"""

from __future__ import annotations

from lcursor.mcp.client.records import ServerTool

TOOLS = """
git git_status repo_path | Shows the working tree status
git git_diff_unstaged repo_path context_lines | Shows changes in the working directory that are not yet staged
git git_diff_staged repo_path context_lines | Shows changes that are staged for commit
git git_diff repo_path target context_lines | Shows differences between branches or commits
git git_commit repo_path message | Records changes to the repository
git git_add repo_path files | Adds file contents to the staging area
git git_reset repo_path | Unstages all staged changes
git git_log repo_path max_count start_timestamp end_timestamp | Shows the commit logs
git git_create_branch repo_path branch_name base_branch | Creates a new branch from an optional base branch
git git_checkout repo_path branch_name | Switches branches
git git_show repo_path revision | Shows the contents of a commit
git git_branch repo_path branch_type contains | List Git branches
filesystem read_text_file path head tail | Read the complete contents of a file from the file system as text.
filesystem read_media_file path | Read an image or audio file. Returns the base64 encoded data and MIME type.
filesystem read_multiple_files paths | Read the contents of multiple files simultaneously.
filesystem write_file path content | Create a new file or completely overwrite an existing file with new content.
filesystem edit_file path edits dryRun | Make line-based edits to a text file.
filesystem create_directory path | Create a new directory or ensure a directory exists.
filesystem list_directory path | Get a detailed listing of all files and directories in a specified path.
filesystem directory_tree path excludePatterns | Get a recursive tree view of files and directories as a JSON structure.
filesystem move_file source destination | Move or rename files and directories.
filesystem search_files path pattern excludePatterns | Recursively search for files and directories matching a pattern.
filesystem get_file_info path | Retrieve detailed metadata about a file or directory, including size and creation time.
github create_issue owner repo title body labels assignees | Create a new issue in a GitHub repository
github list_issues owner repo state labels since | List issues in a GitHub repository with filtering options
github get_issue owner repo issue_number | Get details of a specific issue in a GitHub repository
github update_issue owner repo issue_number title body state | Update an existing issue in a GitHub repository
github add_issue_comment owner repo issue_number body | Add a comment to an existing issue
github search_issues q sort order | Search for issues and pull requests across GitHub repositories
github create_pull_request owner repo title head base draft | Create a new pull request in a GitHub repository
github list_pull_requests owner repo state head base | List and filter repository pull requests
github get_pull_request owner repo pull_number | Get details of a specific pull request
github get_pull_request_files owner repo pull_number | Get the list of files changed in a pull request
github get_pull_request_status owner repo pull_number | Get the combined status of all status checks for a pull request
github create_pull_request_review owner repo pull_number event comments | Create a review on a pull request
github merge_pull_request owner repo pull_number merge_method | Merge a pull request
github fork_repository owner repo organization | Fork a GitHub repository to your account or specified organization
github search_code q sort order | Search for code across GitHub repositories
github search_repositories query page | Search for GitHub repositories
github get_file_contents owner repo path branch | Get the contents of a file or directory from a GitHub repository
github list_workflow_runs owner repo workflow_id status | List runs of a GitHub Actions workflow
github get_job_logs owner repo job_id | Download logs for a workflow job
slack list_channels limit cursor | List public channels in the workspace with pagination
slack post_message channel_id text | Post a new message to a Slack channel
slack reply_to_thread channel_id thread_ts text | Reply to a specific message thread in Slack
slack add_reaction channel_id timestamp reaction | Add a reaction emoji to a message
slack get_channel_history channel_id limit | Get recent messages from a channel
slack get_thread_replies channel_id thread_ts | Get all replies in a message thread
slack get_users cursor limit | Get a list of all users in the workspace with their basic profile information
slack get_user_profile user_id | Get detailed profile information for a specific user
jira jira_search jql fields limit | Search Jira issues using JQL (Jira Query Language)
jira jira_get_issue issue_key fields | Get details of a specific Jira issue including its Epic links
jira jira_create_issue project_key summary issue_type assignee | Create a new Jira issue with optional Epic link
jira jira_update_issue issue_key fields | Update an existing Jira issue including changing status
jira jira_transition_issue issue_key transition_id comment | Transition a Jira issue to a new status
jira jira_add_comment issue_key comment | Add a comment to a Jira issue
jira jira_add_worklog issue_key time_spent started | Add a worklog entry to a Jira issue
jira jira_get_sprint_issues sprint_id fields | Get jira issues from sprint
jira jira_get_agile_boards board_name project_key | Get jira agile boards by name or project key
jira jira_link_issues link_type inward_issue_key outward_issue_key | Create a link between two Jira issues
postgres query sql | Run a read-only SQL query
postgres list_schemas | List all schemas in the database
postgres list_objects schema_name object_type | List objects in a schema: tables, views, sequences
postgres get_object_details schema_name object_name | Show detailed information about a database object: columns, constraints, indexes
postgres explain_query sql analyze | Explains the execution plan for a SQL query, with cost estimates
postgres analyze_query_indexes queries max_index_size_mb | Analyze a list of SQL queries and recommend optimal indexes
postgres get_top_queries sort_by limit | Reports the slowest or most resource-intensive queries
postgres analyze_db_health health_type | Analyzes database health: buffer cache, connections, vacuum, replication
time get_current_time timezone | Get current time in a specific timezone
time convert_time source_timezone time target_timezone | Convert time between timezones
fetch fetch url max_length start_index raw | Fetches a URL from the internet and optionally extracts its contents as markdown.
browser browser_navigate url | Navigate to a URL
browser browser_navigate_back | Go back to the previous page
browser browser_snapshot | Capture accessibility snapshot of the current page, this is better than screenshot
browser browser_take_screenshot type filename fullPage | Take a screenshot of the current page. You can't perform actions based on the screenshot.
browser browser_click element ref button | Perform click on a web page
browser browser_type element ref text submit | Type text into editable element
browser browser_fill_form fields | Fill multiple form fields
browser browser_select_option element ref values | Select an option in a dropdown
browser browser_press_key key | Press a key on the keyboard
browser browser_console_messages onlyErrors | Returns all console messages
browser browser_network_requests | Returns all network requests since loading the page
browser browser_evaluate function element | Evaluate JavaScript expression on page or element
browser browser_wait_for time text textGone | Wait for text to appear or disappear or a specified time to pass
browser browser_tabs action index | List, create, close, or select a browser tab.
memory create_entities entities | Create multiple new entities in the knowledge graph
memory add_observations observations | Add new observations to existing entities in the knowledge graph
memory search_nodes query | Search for nodes in the knowledge graph based on a query
memory delete_entities entityNames | Delete multiple entities and their associated relations from the knowledge graph
sentry find_issues organizationSlug query sortBy | Find issues in Sentry: grouped errors of an application
sentry get_issue_details issueId eventId | Retrieve issue details from Sentry, including the stacktrace
sentry update_issue issueId status assignedTo | Update an issue's status or assignment in Sentry
docker list_containers all filters | List all Docker containers
docker fetch_container_logs container_id tail | Fetch logs for a Docker container
docker run_container image name ports environment | Run an image in a new Docker container
docker stop_container container_id | Stop a Docker container
docker build_image path tag dockerfile | Build a Docker image from a Dockerfile
kubernetes pods_list namespace labelSelector | List the Kubernetes pods in the current cluster
kubernetes pods_log namespace name container | Get the logs of a Kubernetes Pod
kubernetes resources_scale apiVersion kind name scale | Get or update the scale of a Kubernetes resource
"""

QUESTIONS = """
what have I modified since the last commit | git git_status git_diff_unstaged git_diff
save my work with a message | git git_commit
who changed this recently, history of the project | git git_log
start a feature branch | git git_create_branch
switch to main | git git_checkout
compare two branches | git git_diff
take files out of the index again | git git_reset
what would go into the next commit | git git_diff_staged git_status
open a text file on disk | filesystem read_text_file
make a folder | filesystem create_directory
rename a file | filesystem move_file
how large is this file and when was it made | filesystem get_file_info
show the folder structure of the project | filesystem directory_tree list_directory
find all files called *.toml | filesystem search_files
look at a picture file | filesystem read_media_file
report a bug on GitHub | github create_issue
open a PR for my branch | github create_pull_request
which files does the PR touch | github get_pull_request_files
did CI pass for this pull request | github get_pull_request_status list_workflow_runs
why did the build fail on GitHub Actions | github get_job_logs list_workflow_runs
approve a pull request | github create_pull_request_review
close an issue on GitHub | github update_issue
answer on a GitHub issue | github add_issue_comment
find example code that uses a library in public repositories | github search_code
copy someone's repository into my account | github fork_repository
land the pull request | github merge_pull_request
open bugs of the repository with a label | github list_issues search_issues
tell the team in Slack that the release is out | slack post_message
what was said in the channel today | slack get_channel_history
answer in a thread | slack reply_to_thread
put a thumbs up on a message | slack add_reaction
what is the email of a colleague in Slack | slack get_user_profile get_users
which channels exist | slack list_channels
tickets assigned to me in Jira | jira jira_search
file a ticket in Jira | jira jira_create_issue
move the ticket to done | jira jira_transition_issue jira_update_issue
log two hours of work on a ticket | jira jira_add_worklog
what is in the current sprint | jira jira_get_sprint_issues
mark one ticket as blocked by another | jira jira_link_issues
read ticket PROJ-12 | jira jira_get_issue
how many rows has the users table | postgres query
which columns does a table have | postgres get_object_details
what tables are in the database | postgres list_objects list_schemas
why is this SQL slow | postgres explain_query get_top_queries analyze_query_indexes
which index should I add | postgres analyze_query_indexes
is the database healthy, too many connections | postgres analyze_db_health
what time is it in Tokyo | time get_current_time
when is 3 pm in New York for me in Berlin | time convert_time
download a web page and read it | fetch fetch
open the site in a browser | browser browser_navigate
press the login button on the page | browser browser_click
enter my name into the input field | browser browser_type browser_fill_form
what errors does the page print in the JavaScript console | browser browser_console_messages
which HTTP calls does the page make | browser browser_network_requests
make an image of the page as it looks now | browser browser_take_screenshot
remember a fact for later | memory create_entities add_observations
stack trace of a crash in production | sentry get_issue_details find_issues
output of a running container | docker fetch_container_logs
start nginx in Docker | docker run_container
more replicas of a deployment | kubernetes resources_scale
"""


def tools() -> list[ServerTool]:
    """Return the tools."""
    found = []
    for line in TOOLS.strip().splitlines():
        names, _, description = line.partition(" | ")
        server, name, *arguments = names.split()
        schema = {"type": "object", "properties": {each: {"type": "string"} for each in arguments}}
        found.append(ServerTool(server, name, description, schema))
    return found


def questions() -> list[tuple[str, list[str]]]:
    """Return questions with the keys of the tools that are right."""
    found = []
    for line in QUESTIONS.strip().splitlines():
        question, _, right = line.partition(" | ")
        server, *names = right.split()
        found.append((question, [f"{server}__{name}" for name in names]))
    return found
