# SPDX-License-Identifier: MIT
# How tests/unit/Makefile builds the tests of libxnem: with the library's own
# sources, under the same sanitizers, over a wrapped ioctl.
test_libxnem_SRCS := $(patsubst $(TOP)/%,%,$(wildcard $(TOP)/libxnem/src/*.c))
test_libxnem_CFLAGS := -I$(TOP)/libxnem/include -I$(TOP)/common -pthread -Wl,--wrap=ioctl -Wl,--wrap=epoll_ctl -Wl,--wrap=mmap -Wl,--wrap=clock_gettime
