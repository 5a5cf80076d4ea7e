# Writes OUT, a header that says which build this is, for run_origin.c; it is replaced only where it differs.
# Which commit: asked at each build, as CMake does not run again after a commit.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --match= OUTPUT_VARIABLE commit
                ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed OR NOT commit)
  set(commit "")
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[#define DP_BUILD_COMMIT    "@commit@"
#define DP_BUILD_TYPE      "@TYPE@"
#define DP_BUILD_COMPILER  "@COMPILER@"
#define DP_BUILD_LIBRARIES "@LIBRARIES@"
]] @ONLY)
