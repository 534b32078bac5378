# Read by CMake right after llama.cpp's own project(), in place of engine.cmake, for GPUs: chats need
# a llama-server that uses them, and its packages support none. It is linked to the same libllama and
# libggml, and installed beside them.
include(${CMAKE_CURRENT_LIST_DIR}/engine.cmake)
set(LLAMA_BUILD_COMMON ON)
set(LLAMA_BUILD_TOOLS ON)
set(LLAMA_BUILD_SERVER ON)
set(LLAMA_OPENSSL OFF)
set(LLAMA_USE_PREBUILT_UI OFF) # it would be downloaded

function(lcursor_install_server)
  get_property(tools DIRECTORY tools PROPERTY SUBDIRECTORIES)
  foreach(tool ${tools})
    get_property(targets DIRECTORY ${tool} PROPERTY BUILDSYSTEM_TARGETS)
    set_target_properties(${targets} PROPERTIES EXCLUDE_FROM_ALL ON)
  endforeach()
  set(parts llama-server llama-server-impl llama-common mtmd)
  set(origin $<IF:$<PLATFORM_ID:Darwin>,@loader_path,$ORIGIN>)
  set_target_properties(${parts} PROPERTIES
    EXCLUDE_FROM_ALL OFF INSTALL_RPATH ${origin} BUILD_WITH_INSTALL_RPATH ON)
  # CUDA's libraries are found at run time only: libggml-cuda names their folder.
  target_link_options(llama-server PRIVATE
    $<$<PLATFORM_ID:Linux>:LINKER:--allow-shlib-undefined>)
  set(folder ${SKBUILD_PLATLIB_DIR}/llama_cpp/lib)
  install(TARGETS ${parts} RUNTIME DESTINATION ${folder} LIBRARY DESTINATION ${folder})
endfunction()
cmake_language(DEFER CALL lcursor_install_server)
