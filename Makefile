# SPDX-License-Identifier: Apache-2.0
#
# make demo      builds everything (installs what is missing) and shows it at work
# make test      builds everything (installs what is missing) and runs all tests
# make help      lists the other targets
#
# V=1            shows the commands
# BUILD=dir      builds elsewhere (default build/)
# SAN=address    or undefined, thread: a build with that sanitizer, in BUILD/SAN

VERSION := 0.1.0
SOVERSION := 0

CC ?= gcc
AR ?= ar
NVCC ?= nvcc
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DESTDIR ?=
SAN ?=
BUILD ?= build
V ?= 0

O := $(BUILD)$(if $(SAN),/$(SAN))
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),@:,@printf '  %-7s %s\n' $(1) $(patsubst $(O)/%,%,$@))

WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Wvla -Wstrict-prototypes \
	-Wmissing-prototypes -Wformat=2 -Wundef
CFLAGS ?= -O2 -g
R3RING_CFLAGS := -std=gnu11 $(WARNINGS) $(if $(CI),-Werror) -fvisibility=hidden -fPIC \
	-D_GNU_SOURCE -DR3RING_VERSION='"$(VERSION)"' -Iinclude -I. -pthread -MMD -MP $(CFLAGS)
R3RING_LDFLAGS := -pthread $(LDFLAGS)
ifneq ($(SAN),)
R3RING_CFLAGS += -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
R3RING_LDFLAGS += -fsanitize=$(SAN)
endif

# Data flows one way: include <- ring, record, channel <- kernels, device
# <- producer | capture_daemon | consumer <- tools.
LIBRARY_DIRS := ring record channel kernels device producer consumer
LIBRARY := $(patsubst %.c,$(O)/%.o,$(wildcard $(addsuffix /*.c,$(LIBRARY_DIRS))))
REFERENCE := $(patsubst %.c,$(O)/%.o,$(wildcard producer/reference/*.c))
DAEMON := $(patsubst %.c,$(O)/%.o,$(wildcard capture_daemon/*.c))
TOOLS := $(patsubst %.c,$(O)/%.o,$(wildcard tools/*.c))
SUPPORT := $(patsubst %.c,$(O)/%.o,$(wildcard tests/support/*.c))
UNIT := $(patsubst %.c,$(O)/%.o,$(wildcard tests/unit/*.c))
SYSTEM := $(patsubst %.c,$(O)/%.o,$(wildcard tests/system/*.c))
STRESS := $(patsubst %.c,$(O)/%,$(wildcard tests/stress/*.c))
BENCH := $(patsubst %.c,$(O)/%.o,$(wildcard tests/bench/*.c))

PROGRAMS := $(if $(DAEMON),$(O)/r3ringd) $(if $(TOOLS),$(O)/r3ring)
LIBRARIES := $(O)/libr3ring.a $(O)/libr3ring.so
TESTS := $(if $(UNIT),$(O)/tests/run-unit) $(if $(SYSTEM),$(O)/tests/run-system) $(STRESS)

.PHONY: all
all: deps $(LIBRARIES) $(PROGRAMS)

.PHONY: build
build: $(LIBRARIES) $(PROGRAMS) $(TESTS)

$(O)/%.o: %.c
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(R3RING_CFLAGS) -c -o $@ $<

$(O)/libr3ring.a: $(LIBRARY)
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/libr3ring.so.$(VERSION): $(LIBRARY) libr3ring.map
	$(call say,LD)
	$(Q)$(CC) -shared -Wl,-soname,libr3ring.so.$(SOVERSION) -Wl,--version-script=libr3ring.map \
		-Wl,-z,defs -o $@ $(LIBRARY) $(R3RING_LDFLAGS)

$(O)/libr3ring.so: $(O)/libr3ring.so.$(VERSION)
	$(Q)ln -sf libr3ring.so.$(VERSION) $(O)/libr3ring.so.$(SOVERSION)
	$(Q)ln -sf libr3ring.so.$(SOVERSION) $@

$(O)/r3ringd: $(DAEMON) $(O)/libr3ring.a
	$(call say,LD)
	$(Q)$(CC) -o $@ $^ $(R3RING_LDFLAGS) -luring -ljansson

$(O)/r3ring: $(TOOLS) $(REFERENCE) $(O)/libr3ring.a
	$(call say,LD)
	$(Q)$(CC) -o $@ $^ $(R3RING_LDFLAGS) -luring -ljansson -lm

# Tests see the library from inside (the archive hides nothing).
INSIDE := $(SUPPORT) $(REFERENCE) $(filter-out $(O)/capture_daemon/main.o,$(DAEMON)) \
	$(O)/libr3ring.a

$(O)/tests/run-unit: $(UNIT) $(INSIDE)
	$(call say,LD)
	$(Q)$(CC) -o $@ $^ $(R3RING_LDFLAGS) -lcriterion -luring -ljansson -lm

$(O)/tests/run-system: $(SYSTEM) $(INSIDE)
	$(call say,LD)
	$(Q)$(CC) -o $@ $^ $(R3RING_LDFLAGS) -lcriterion -luring -ljansson -lm

$(STRESS): $(O)/%: $(O)/%.o $(INSIDE)
	$(call say,LD)
	$(Q)$(CC) -o $@ $^ $(R3RING_LDFLAGS) -luring -ljansson -lm

$(O)/tests/run-bench: $(BENCH) $(INSIDE)
	$(call say,LD)
	$(Q)$(CC) -o $@ $^ $(R3RING_LDFLAGS) -luring -ljansson -lm

.PHONY: clean
clean:
	rm -rf $(BUILD) compile_commands.json

.PHONY: deps
deps:

-include $(shell find $(O) -name '*.d' 2>/dev/null)
