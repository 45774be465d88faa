# find_package(vkrt) defines vkrt::vkrt; vkrt_DIR is what `vkrt-config --folder` prints.
if(NOT TARGET vkrt::vkrt)
  add_library(vkrt::vkrt SHARED IMPORTED)
  set_target_properties(vkrt::vkrt PROPERTIES
    IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/libvkrt.so.0"
    IMPORTED_SONAME "libvkrt.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}")
endif()
