# Read by CMake right after ggml's project(), where CUDA comes as packages: see gpu.py beside it.
#
# LCURSOR_CUDA_ARCHITECTURES lists the GPUs to compile for, joined by "+".
string(REPLACE "+" ";" CMAKE_CUDA_ARCHITECTURES "${LCURSOR_CUDA_ARCHITECTURES}")

# CUDA's libraries are in the same environment as the engine, which may be moved.
function(lcursor_find_cuda_libraries)
  set_target_properties(ggml-cuda PROPERTIES
    INSTALL_RPATH "$ORIGIN;$ORIGIN/../../nvidia/cu13/lib"
    INSTALL_RPATH_USE_LINK_PATH OFF)
endfunction()
# At the very end, after llama-cpp-python has set its own.
cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL lcursor_find_cuda_libraries)
