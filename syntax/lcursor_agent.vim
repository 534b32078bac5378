" The Markdown of an agent's buffer. Tree-sitter would parse a long run again after each write.

if exists("b:current_syntax")
  finish
endif

syntax match lcursorAgentHeading "^#\{1,6} .*$"
syntax match lcursorAgentQuote "^>.*$" contains=lcursorAgentCode
syntax match lcursorAgentList "^\s*\%([-*+]\|\d\+[.)]\)\ze\s"
syntax region lcursorAgentStrong start="\*\*\S\@=" end="\S\@<=\*\*" oneline
syntax region lcursorAgentCode start="`" end="`" oneline
syntax region lcursorAgentBlock start="^\z(`\{3,}\)[^`]*$" end="^\z1\s*$" keepend
" A line of a step is never in a block.
syntax sync match lcursorAgentStep grouphere NONE "^[•?✓✗] \l"
syntax sync minlines=50

highlight default link lcursorAgentHeading @markup.heading
highlight default link lcursorAgentQuote @markup.quote
highlight default link lcursorAgentList @markup.list
highlight default link lcursorAgentStrong @markup.strong
highlight default link lcursorAgentCode @markup.raw
highlight default link lcursorAgentBlock @markup.raw.block

let b:current_syntax = "lcursor_agent"
