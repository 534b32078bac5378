# Read by CMake right after llama.cpp's own project(): see engine.py beside it.
#
# llama-cpp-python forces LLAMA_BUILD_COMMON into the cache, but lcursor loads libllama and
# libggml only. A normal variable shadows the cache's: 2 minutes of compiling stay of 9.
set(LLAMA_BUILD_COMMON OFF)
# A wheel knows no symbolic links: with version suffixes each library would be in it three times.
set(CMAKE_PLATFORM_NO_VERSIONED_SONAME ON)

# LCURSOR_NO_AMX builds for this machine's CPU without its AMX unit. Compilers that do not know the
# flags do not use AMX either.
if(LCURSOR_NO_AMX)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-mno-amx-tile LCURSOR_KNOWS_AMX)
  if(LCURSOR_KNOWS_AMX)
    add_compile_options(-mno-amx-tile -mno-amx-int8 -mno-amx-bf16)
  endif()
endif()

# GCC deletes stores to the tile configuration as dead, because `_tile_loadconfig` declares that it
# reads 8 of its 64 bytes; the CPU then faults at `ldtilecfg` (ggml-org/llama.cpp #20824). Without
# the two passes that delete dead stores, the code is right. The paths must be absolute: CMake
# ignores properties of a relative path in another directory without a word.
function(lcursor_keep_tile_configuration)
  if(TARGET ggml-cpu AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    get_target_property(directory ggml-cpu SOURCE_DIR)
    set_source_files_properties(
      ${directory}/ggml-cpu/amx/amx.cpp ${directory}/ggml-cpu/amx/mmq.cpp
      TARGET_DIRECTORY ggml-cpu
      PROPERTIES COMPILE_OPTIONS "-fno-tree-dse;-fno-dse")
  endif()
endfunction()
cmake_language(DEFER CALL lcursor_keep_tile_configuration)
