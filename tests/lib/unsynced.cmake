# dp_unsynced(test): the calls that tests/lib/unsynced.c watches.
function(dp_unsynced test)
  target_sources(${test} PRIVATE ${PROJECT_SOURCE_DIR}/tests/lib/unsynced.c)
  foreach(call open openat fsync fdatasync write pwritev rename renameat renameat2 link mkdir unlink rmdir)
    target_link_options(${test} PRIVATE -Wl,--wrap=${call})
  endforeach()
endfunction()
