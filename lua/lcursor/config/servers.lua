-- Generated from lcursor/config.py and lcursor/llm/apis/ by `make docs`: do not edit.
-- The names of the APIs of servers, and of the hosted providers.

-- stylua: ignore
return {
  apis = {
    "auto", "llama.cpp", "ollama", "openai", "responses", "anthropic", "gemini",
  },
  providers = {
    "anthropic", "deepseek", "gemini", "mistral", "moonshot", "openai", "openrouter", "zai",
  },
}
