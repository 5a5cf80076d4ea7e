/* CMocka with the headers that it needs in front of it. */
#ifndef DP_TESTS_LIB_TEST_H
#define DP_TESTS_LIB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
