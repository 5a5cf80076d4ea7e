/* Child: how a process that a test forked ended. */
#ifndef DP_TESTS_LIB_CHILD_H
#define DP_TESTS_LIB_CHILD_H

#include "tests/lib/test.h"

#include <sys/wait.h>
#include <unistd.h>

/* Waits for its end. Its exit code; minus the number of the signal that ended it. */
static inline int dp_exit_of(pid_t child)
{
    int status = 0;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#endif
