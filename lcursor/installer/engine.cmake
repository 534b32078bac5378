# Read by CMake right after llama.cpp's own project(): see engine.py beside it.
#
# llama-cpp-python forces LLAMA_BUILD_COMMON into the cache, but the Python half loads libllama and
# libggml only. A normal variable shadows the cache's: 2 minutes of compiling stay of 9.
set(LLAMA_BUILD_COMMON OFF)
# A wheel knows no symbolic links: with version suffixes each library would be in it three times.
set(CMAKE_PLATFORM_NO_VERSIONED_SONAME ON)
