# A planted bug: writes `source` (a path in the repository) with texts replaced to `mutant`. Included in a function whose arguments from
# number `texts` on are (text instead)...; it has a `name`, too. (Included, since a call would split the texts at their semicolons.) A text
# that is not there any more stops the configuration, so that a list of bugs cannot rot.
set(path ${PROJECT_SOURCE_DIR}/${source})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
file(READ ${path} contents)
math(EXPR last "${ARGC} - 1")
foreach(at RANGE ${texts} ${last} 2)
  math(EXPR behind "${at} + 1")
  set(text "${ARGV${at}}")
  string(FIND "${contents}" "${text}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "planted bug '${name}': ${source} has no longer the text it replaces:\n${text}")
  endif()
  string(REPLACE "${text}" "${ARGV${behind}}" contents "${contents}")
endforeach()
file(CONFIGURE OUTPUT ${mutant} CONTENT "${contents}" @ONLY)
