# SPDX-License-Identifier: MIT
# What the Makefiles of programs for the emulated host have in common. Sets HERE, the includer's folder.

HERE := $(patsubst %/,%,$(dir $(abspath $(firstword $(MAKEFILE_LIST)))))
O ?= $(HERE)/../../build/tests/$(notdir $(HERE))
override O := $(abspath $(O))
CC ?= cc
CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Werror
ifneq ($(V),1)
Q := @
endif

LIB := $(wildcard $(HERE)/../lib/*.c)
LIB_HEADERS := $(wildcard $(HERE)/../lib/*.h)
