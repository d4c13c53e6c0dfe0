# SPDX-License-Identifier: Apache-2.0
#
# make           builds the library and the programs (installs what is missing)
# make demo      builds everything (installs what is missing) and shows it at work
# make test      builds everything (installs what is missing) and runs all tests
# make help      lists the other targets
#
# V=1            shows the commands
# CI=1           warnings are errors
# BUILD=dir      builds elsewhere (default build/)
# SAN=address    or undefined, thread: a build with that sanitizer, in BUILD/SAN
# TESTPOINTS=1   a build with points at which tests kill, in BUILD/testpoints
# PACKAGES=no    installs nothing: what is missing is an error of the compiler's
# CUDA=no        builds without the CUDA device though there is an nvcc
# NVCC, CUDA_HOME  where the CUDA toolkit is (default: nvcc in PATH, /usr/local/cuda)

VERSION := 0.1.0
SOVERSION := 0

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
AR ?= ar
CUDA_HOME ?= /usr/local/cuda
NVCC := $(or $(shell command -v $(or $(NVCC),nvcc) 2>/dev/null),$(wildcard $(CUDA_HOME)/bin/nvcc))
CUDA_ROOT := $(if $(NVCC),$(abspath $(dir $(realpath $(NVCC)))..))
CUDART := $(firstword $(if $(NVCC),$(wildcard $(CUDA_ROOT)/lib64/libcudart_static.a \
	/usr/lib/*/libcudart_static.a)))
CUDA ?= $(if $(CUDART),yes,no)
CUDA_TARGETS ?= 80 90 100
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
UNITDIR ?= $(PREFIX)/lib/systemd/system
DESTDIR ?=
SAN ?=
TESTPOINTS ?=
BUILD ?= build
PACKAGES ?= yes
V ?= 0

O := $(BUILD)$(if $(SAN),/$(SAN))$(if $(TESTPOINTS),/testpoints)
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),@:,@printf '  %-7s %s\n' $(1) $(patsubst $(O)/%,%,$@))

WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Wvla -Wstrict-prototypes \
	-Wmissing-prototypes -Wformat=2 -Wundef
CFLAGS ?= -O2 -g
# xxHash reads by memcpy: what it does by default for gcc on ARM (a packed union) the
# compiler may move in front of stores to the fields that are hashed.
R3RING_CPPFLAGS := -D_GNU_SOURCE -DR3RING_VERSION='"$(VERSION)"' -DXXH_FORCE_MEMORY_ACCESS=0 \
	-Iinclude -I.
R3RING_CFLAGS := -std=gnu11 $(WARNINGS) -fvisibility=hidden -fPIC $(R3RING_CPPFLAGS) -pthread \
	-MMD -MP $(CFLAGS)
R3RING_CXXFLAGS = -std=gnu++17 $(filter-out -std=% -Wstrict-prototypes -Wmissing-prototypes, \
	$(R3RING_CFLAGS))
R3RING_LDFLAGS := -pthread -lm $(LDFLAGS)
ifneq ($(TESTPOINTS),)
R3RING_CFLAGS += -DR3RING_TEST_POINTS
endif
ifneq ($(SAN),)
R3RING_CFLAGS += -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
R3RING_LDFLAGS += -fsanitize=$(SAN)
endif
# It does not see fences, and gcc says so at each: `make model` looks at what they order.
ifeq ($(SAN)$(findstring clang,$(CC)),thread)
R3RING_CFLAGS += -Wno-tsan
endif

# The runtime is linked statically and finds the driver when it is first called, so
# that programs run on machines without one.
ifeq ($(CUDA),yes)
R3RING_CPPFLAGS += $(addprefix -isystem ,$(wildcard $(CUDA_ROOT)/include))
CUDA_LIBS := $(CUDART) -lrt -ldl
cuda_newest := $(lastword $(CUDA_TARGETS))
NVCCFLAGS := -std=c++17 -O3 -Iinclude -I. -MMD -MP \
	-Xcompiler -fPIC,-fvisibility=hidden,-fno-exceptions,-fno-threadsafe-statics \
	$(foreach t,$(CUDA_TARGETS),-gencode arch=compute_$t,code=sm_$t) \
	-gencode arch=compute_$(cuda_newest),code=compute_$(cuda_newest)
endif

PROGRAM_LIBS := -Wl,--as-needed -luring -ljansson -lzstd -lsqlite3 -lmicrohttpd -lpng -lncursesw -ltinfo \
	-lmd -lm -ldl
TEST_LIBS := -lcriterion $(PROGRAM_LIBS)

# Data flows one way: include <- ring, record, channel <- kernels, device
# <- producer | capture_daemon | consumer <- archive | monitor <- serve | report
# <- tools.
LIBRARY_DIRS := ring record channel kernels device producer consumer consumer/assembler \
	consumer/eplb consumer/load consumer/predict consumer/reserve consumer/signature
LIBRARY := $(patsubst %.c,$(O)/%.o,$(wildcard $(addsuffix /*.c,$(LIBRARY_DIRS))))
CUDA_DEVICE := $(patsubst %.c,$(O)/%.o,$(wildcard device/cuda*.c))
ifeq ($(CUDA),yes)
LIBRARY := $(filter-out $(if $(CUDA_DEVICE),$(O)/device/no_cuda.o),$(LIBRARY))
KERNELS := $(patsubst %.cu,$(O)/%.o,$(wildcard kernels/*.cu))
else
LIBRARY := $(filter-out $(CUDA_DEVICE),$(LIBRARY))
endif
ifneq ($(TESTPOINTS),)
LIBRARY += $(O)/tests/support/test_points.o
endif
REFERENCE := $(patsubst %.c,$(O)/%.o,$(wildcard producer/reference/*.c))
DAEMON := $(patsubst %.c,$(O)/%.o,$(wildcard capture_daemon/*.c))
# Archives, monitors and the HTTP server are the tool's: the library needs none of their libraries.
ARCHIVE := $(patsubst %.c,$(O)/%.o,$(wildcard archive/*.c archive/*/*.c))
MONITOR := $(patsubst %.c,$(O)/%.o,$(wildcard monitor/*.c))
REPORT := $(patsubst %.c,$(O)/%.o,$(wildcard report/*.c))
SERVE := $(patsubst %.c,$(O)/%.o,$(wildcard serve/*.c)) $(O)/serve/page_html.o
TOOLS := $(patsubst %.c,$(O)/%.o,$(wildcard tools/*.c))
SUPPORT := $(patsubst %.c,$(O)/%.o,$(wildcard tests/support/*.c tests/system/engine_sim/*.c))
UNIT := $(patsubst %.c,$(O)/%.o,$(wildcard tests/unit/*.c))
SYSTEM := $(patsubst %.c,$(O)/%.o,$(wildcard tests/system/*.c))
STRESS := $(patsubst %.c,$(O)/%,$(wildcard tests/stress/*.c))
BENCH := $(patsubst %.c,$(O)/%.o,$(wildcard tests/bench/*.c))
WORTH := $(patsubst %.c,$(O)/%.o,$(wildcard tests/bench/worth/*.c))
BENCHED := $(patsubst %.c,$(O)/%.o,$(wildcard tests/bench/unbound/*.c))
# Those of the peers that need no package are tested too.
PEERS_PLAIN := $(addprefix $(O)/tests/bench/,floors.o made_ring.o options.o process.o $(addprefix peers/, \
	course.o kernel.o measure.o message.o pipe.o r3ring.o seqpacket.o))
PEERS := $(addprefix $(O)/tests/bench/peers/, \
	boost.o broker.o ck.o iceoryx.o main.o redis.o report.o rows.o rte_ring.o zeromq.o)
DEMO := $(patsubst %.c,$(O)/%.o,$(wildcard tests/demo/*.c))
# The same programs over a stand-in for the CUDA runtime; with or without a toolkit.
FAKE := $(O)/fakecuda
FAKECUDA := $(patsubst %.c,$(FAKE)/%.o,$(wildcard tests/support/fakecuda/*.c))
FAKE_DEVICE := $(patsubst %.c,$(FAKE)/%.o,$(wildcard device/cuda*.c))
FAKE_TESTS := $(patsubst %.c,$(FAKE)/%.o,$(wildcard tests/cuda/*.c))
# The same tests, and a benchmark, on a real GPU.
GPU_TESTS := $(addprefix $(O)/gpu/tests/cuda/,capture_steps.o gpu_rig.o model_run.o namespaces.o \
	placement.o reference.o) \
	$(addprefix $(O)/gpu/tests/gpu/,litmus.o real_gpu.o)
GPU_BENCH := $(addprefix $(O)/gpu/tests/gpu/,bench.o forward.o latency.o)
FAKE_LIBRARY := $(if $(FAKE_DEVICE),$(filter-out $(O)/device/no_cuda.o $(CUDA_DEVICE),$(LIBRARY)), \
	$(LIBRARY)) $(FAKE_DEVICE) $(FAKECUDA)
CONTAINER := $(patsubst %.c,$(O)/%.o,$(wildcard tests/container/*.c))
HEADERS := $(wildcard include/r3ring/*.h)
MANUALS := $(wildcard docs/man/*.[1-8])
OPENAPI := docs/openapi.json
SHARED := $(OPENAPI) docs/grafana.json docs/alerts.yml

PROGRAM_OBJECTS := $(LIBRARY) $(REFERENCE) $(DAEMON) $(ARCHIVE) $(MONITOR) $(REPORT) $(SERVE) $(TOOLS)
TEST_OBJECTS := $(SUPPORT) $(UNIT) $(SYSTEM) $(STRESS:=.o) $(BENCH) $(BENCHED) $(WORTH) $(DEMO) \
	$(CONTAINER) $(PEERS_PLAIN) $(filter-out %/boost.o,$(PEERS))
FAKE_OBJECTS := $(FAKECUDA) $(FAKE_DEVICE) $(FAKE_TESTS) $(GPU_TESTS) $(GPU_BENCH)
OBJECTS := $(sort $(PROGRAM_OBJECTS) $(TEST_OBJECTS) $(FAKE_OBJECTS))
SOURCES := $(patsubst $(O)/%.o,%.c,$(filter-out $(FAKE_OBJECTS) $(O)/serve/page_html.o,$(OBJECTS)))

PROGRAMS := $(if $(DAEMON),$(O)/r3ringd) $(if $(TOOLS),$(O)/r3ring)
LIBRARIES := $(O)/libr3ring.a $(O)/libr3ring.so
TESTS := $(if $(UNIT),$(O)/tests/run-unit) $(if $(SYSTEM),$(O)/tests/run-system) \
	$(if $(FAKE_TESTS),$(FAKE)/tests/run-cuda) $(STRESS)

# A make below this one, in parallel even where this one was not asked to be.
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
submake = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

.PHONY: all
all: $(LIBRARIES) $(PROGRAMS)

.PHONY: build
build: all $(TESTS) $(if $(BENCH),$(O)/tests/run-bench) $(if $(DEMO),$(O)/tests/run-demo) \
	$(O)/tests/plain-container $(if $(filter yes,$(CUDA)),$(O)/tests/run-gpu $(O)/tests/bench-gpu)

# ---- packages ----------------------------------------------------------
# A stamp for each group (build, test, model, bench, peers, lint, aarch64), so that later runs
# of make do not even look.

packages = $(if $(filter no,$(PACKAGES)),,$(BUILD)/packages/$(1))

$(BUILD)/packages/%: scripts/install-packages.sh
	@CC="$(CC)" CXX="$(CXX)" scripts/install-packages.sh $*
	@mkdir -p $(@D) && touch $@

# One after the other: two apt-get at a time wait for each other's lock.
$(BUILD)/packages/test: | $(BUILD)/packages/build
$(BUILD)/packages/model $(BUILD)/packages/bench $(BUILD)/packages/lint: | $(BUILD)/packages/test
$(BUILD)/packages/peers: | $(BUILD)/packages/build

$(OBJECTS): | $(call packages,build)
$(UNIT) $(SYSTEM) $(FAKE_TESTS): | $(call packages,test)

# ---- compiling and linking ---------------------------------------------

# Other flags, or another list of files, make old objects and archives stale.
# CI only turns warnings into errors, so it is left out.
.PHONY: force
force:
remember = @mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(1))' | cmp -s - $@ || \
	printf '%s\n' '$(subst ','\'',$(1))' > $@

$(O)/flags: force
	$(call remember,$(CC) $(R3RING_CFLAGS) | $(R3RING_LDFLAGS))

$(O)/files: force
	$(call remember,$(sort $(OBJECTS) $(KERNELS)))

$(O)/%.o: %.c $(O)/flags
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(R3RING_CFLAGS) $(PEER_CFLAGS) $(if $(CI),-Werror) -c -o $@ $<

$(O)/%.o: %.cc $(O)/flags
	$(call say,CXX)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(R3RING_CXXFLAGS) $(if $(CI),-Werror) -c -o $@ $<

$(FAKE)/%.o: %.c $(O)/flags
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) -Itests/support/fakecuda/include $(R3RING_CFLAGS) $(if $(CI),-Werror) -c -o $@ $<

$(O)/gpu/%.o: %.c $(O)/flags
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(R3RING_CFLAGS) $(if $(CI),-Werror) -c -o $@ $<

# The page of `r3ring serve`, one file, as an array: the program needs no other.
$(O)/serve/page_html.c: $(wildcard serve/page/*)
	$(call say,PAGE)
	@mkdir -p $(@D)
	$(Q)serve/page/join.sh > $(@:.c=.tmp) && { \
		echo 'extern const char page_html[];'; \
		echo 'extern const unsigned long page_html_length;'; \
		echo 'const char page_html[] = {'; \
		od -An -v -tu1 $(@:.c=.tmp) | sed 's/ *\([0-9][0-9]*\)/\1,/g'; \
		echo '0};'; \
		echo 'const unsigned long page_html_length = sizeof(page_html) - 1;'; } > $@
	$(Q)rm $(@:.c=.tmp)

$(O)/serve/page_html.o: $(O)/serve/page_html.c $(O)/flags
	$(call say,CC)
	$(Q)$(CC) $(R3RING_CFLAGS) $(if $(CI),-Werror) -c -o $@ $<

# Their loops are written to be vectorized; at -O2 compilers hold back.
$(O)/kernels/convert.o $(O)/producer/span_block.o $(O)/consumer/assembler/fill.o \
$(O)/consumer/reserve/demand.o: private R3RING_CFLAGS += -O3

# It is part of the program.
$(O)/tools/serve_openapi.o: $(OPENAPI)

# They run the kernels' bodies in the GPU's place, which faults at a misaligned access.
ifeq ($(SAN),)
$(O)/tests/support/capture_rig.o $(FAKE)/tests/support/fakecuda/kernels.o: private R3RING_CFLAGS += \
	-fsanitize=alignment -fsanitize-undefined-trap-on-error
endif

# Warnings of the host's compiler are off: nvcc hands it code of its own making.
$(KERNELS): $(O)/%.o: %.cu $(O)/nvcc-flags
	$(call say,NVCC)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCCFLAGS) $(if $(CI),-Werror all-warnings) -c -o $@ $<

$(O)/nvcc-flags: force
	$(call remember,$(NVCC) $(NVCCFLAGS))

$(O)/libr3ring.a: $(LIBRARY) $(KERNELS) $(O)/files
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIBRARY) $(KERNELS)

$(O)/libr3ring.so.$(VERSION): $(LIBRARY) $(KERNELS) $(O)/files libr3ring.map
	$(call say,LD)
	$(Q)$(CC) -shared -Wl,-soname,libr3ring.so.$(SOVERSION) -Wl,--version-script=libr3ring.map \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $(LIBRARY) $(KERNELS) \
		$(R3RING_LDFLAGS) $(CUDA_LIBS)

$(O)/libr3ring.so: $(O)/libr3ring.so.$(VERSION)
	$(Q)ln -sf libr3ring.so.$(VERSION) $(O)/libr3ring.so.$(SOVERSION)
	$(Q)ln -sf libr3ring.so.$(SOVERSION) $@

link = $(Q)$(CC) -o $@ $(filter %.o %.a,$^) $(R3RING_LDFLAGS) $(1) \
	$(if $(filter %.a,$^),$(CUDA_LIBS))

$(O)/r3ringd: $(DAEMON) $(O)/libr3ring.a $(O)/files
	$(call say,LD)
	$(call link,$(PROGRAM_LIBS))

$(O)/r3ring: $(TOOLS) $(ARCHIVE) $(MONITOR) $(REPORT) $(SERVE) $(REFERENCE) $(O)/libr3ring.a $(O)/files
	$(call say,LD)
	$(call link,$(PROGRAM_LIBS))

# Tests see the library from inside (the archive hides nothing).
INSIDE := $(SUPPORT) $(REFERENCE) $(filter-out $(O)/capture_daemon/main.o,$(DAEMON)) \
	$(filter-out $(O)/tools/r3ring.o,$(TOOLS)) $(ARCHIVE) $(MONITOR) $(REPORT) $(SERVE) \
	$(O)/libr3ring.a $(O)/files

$(O)/tests/run-unit: $(UNIT) $(PEERS_PLAIN) $(filter-out %/main.o,$(WORTH)) $(INSIDE)
	$(call say,LD)
	$(call link,$(TEST_LIBS))

# Starts the programs, so they must be there.
$(O)/tests/run-system: $(SYSTEM) $(INSIDE) | $(PROGRAMS)
	$(call say,LD)
	$(call link,$(TEST_LIBS))

$(STRESS): $(O)/%: $(O)/%.o $(INSIDE)
	$(call say,LD)
	$(call link,$(PROGRAM_LIBS))

# ---- over the stand-in CUDA runtime ------------------------------------

$(FAKE)/libr3ring.a: $(FAKE_LIBRARY) $(O)/files
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $(FAKE_LIBRARY)

link-fake = $(Q)$(CC) -o $@ $(filter %.o %.a,$^) $(R3RING_LDFLAGS) $(1)

$(FAKE)/r3ringd: $(DAEMON) $(FAKE)/libr3ring.a $(O)/files
	$(call say,LD)
	$(call link-fake,$(PROGRAM_LIBS))

$(FAKE)/r3ring: $(TOOLS) $(ARCHIVE) $(MONITOR) $(REPORT) $(SERVE) $(REFERENCE) $(FAKE)/libr3ring.a $(O)/files
	$(call say,LD)
	$(call link-fake,$(PROGRAM_LIBS))

# Starts the programs; where there is a toolkit, the stand-in is compared with it.
$(FAKE)/tests/run-cuda: $(FAKE_TESTS) $(filter-out %/demo.o,$(DEMO)) \
		$(filter-out %/libr3ring.a,$(INSIDE)) $(FAKE)/libr3ring.a \
		| $(FAKE)/r3ringd $(FAKE)/r3ring $(if $(filter yes,$(CUDA)),$(FAKE)/as-declared)
	$(call say,LD)
	@mkdir -p $(@D)
	$(call link-fake,$(TEST_LIBS))

# What runs on real GPUs, over the stand-in: tests/gpu/stand-in/nvidia-smi says how.
$(FAKE)/tests/run-gpu: $(FAKE_TESTS) $(FAKE)/tests/gpu/litmus.o $(filter-out %/demo.o,$(DEMO)) \
		$(filter-out %/libr3ring.a,$(INSIDE)) $(FAKE)/libr3ring.a \
		| $(FAKE)/r3ringd $(FAKE)/r3ring
	$(call say,LD)
	$(call link-fake,$(TEST_LIBS))

$(FAKE)/tests/bench-gpu: $(patsubst $(O)/gpu/%,$(FAKE)/%,$(GPU_BENCH)) \
		$(filter-out %/libr3ring.a,$(INSIDE)) $(FAKE)/libr3ring.a \
		| $(FAKE)/r3ringd $(FAKE)/r3ring
	$(call say,LD)
	$(call link-fake,$(PROGRAM_LIBS))

$(O)/tests/run-gpu: $(GPU_TESTS) $(filter-out %/demo.o,$(DEMO)) $(INSIDE) | $(PROGRAMS)
	$(call say,LD)
	$(call link,$(TEST_LIBS))

$(O)/tests/bench-gpu: $(GPU_BENCH) $(INSIDE) | $(PROGRAMS)
	$(call say,LD)
	$(call link,$(PROGRAM_LIBS))

# Names, types and values are those of NVIDIA's headers.
$(FAKE)/as-declared: $(wildcard tests/support/fakecuda/*.[ch])
	$(call say,CHECK)
	@mkdir -p $(@D)
	$(Q)for source in $(wildcard tests/support/fakecuda/*.c); do \
		$(CC) -std=gnu11 $(WARNINGS) -Werror -Wno-deprecated-declarations -fsyntax-only \
			$(R3RING_CPPFLAGS) $$source || exit 1; done
	@touch $@

# ---- more tests --------------------------------------------------------

# What the benchmark counts instructions of.
$(O)/tests/bench-unbound: $(BENCHED) $(O)/files
	$(call say,LD)
	$(call link)

$(O)/tests/run-bench: $(BENCH) $(INSIDE) | $(O)/tests/bench-unbound
	$(call say,LD)
	$(call link,$(PROGRAM_LIBS))

# What reservation is worth, on recorded routing.
$(O)/tests/bench-worth: $(WORTH) $(INSIDE)
	$(call say,LD)
	$(call link,$(PROGRAM_LIBS))

# Found only once the packages are there, so not looked for before.
PEER_LIBS := -lrte_ring -lrte_eal -liceoryx_binding_c -lzmq -lhiredis -ljansson
iceoryx = $(lastword $(wildcard /usr/include/iceoryx/v*))
$(O)/tests/bench/peers/rte_ring.o: private PEER_CFLAGS = \
	$(patsubst -I%,-isystem %,$(shell pkg-config --cflags libdpdk))
$(O)/tests/bench/peers/ck.o: private PEER_CFLAGS = \
	-DCK_VERSION='"$(shell pkg-config --modversion ck)"'
$(O)/tests/bench/peers/iceoryx.o: private PEER_CFLAGS = -isystem $(iceoryx) \
	-DICEORYX_VERSION='"$(patsubst v%,%,$(notdir $(iceoryx)))"'
$(PEERS): | $(call packages,peers)

$(O)/tests/run-peers: $(PEERS_PLAIN) $(PEERS) $(INSIDE)
	$(call say,LD)
	$(Q)$(CXX) -o $@ $(sort $(filter %.o,$^)) $(filter %.a,$^) $(R3RING_LDFLAGS) $(PEER_LIBS) \
		$(PROGRAM_LIBS) $(CUDA_LIBS)

# Starts the programs as well.
$(O)/tests/run-demo: $(DEMO) $(INSIDE) | $(PROGRAMS)
	$(call say,LD)
	$(call link,$(PROGRAM_LIBS))

$(O)/tests/plain-container: $(CONTAINER) $(O)/tests/support/container.o
	$(call say,LD)
	$(call link)

-include $(OBJECTS:.o=.d) $(KERNELS:.o=.d) $(O)/tests/bench/peers/boost.d

# ---- demo, tests, benchmarks -------------------------------------------

# The text that the models read.
TEXT ?= LICENSE

.PHONY: demo
demo: $(call packages,build)
	+$(Q)$(submake) $(O)/tests/run-demo
	$(Q)$(O)/tests/run-demo $(TEXT)

# A build that fails is one failed test more; the others still run.
.PHONY: test
test: $(call packages,build) $(call packages,test)
	+$(Q)build=ok; $(submake) -k build killed || build=failed; \
	MAKE="$(MAKE)" CC="$(CC)" CXX="$(CXX)" NVCC="$(NVCC)" tests/run $(O) $$build

# These kill at points that no other build has.
POINTED := $(addprefix $(O)/testpoints/tests/stress/,begin_told_once drop_told_once end_told_once gap_told_once kills untold_died)

.PHONY: killed
killed: $(call packages,build)
	+$(Q)$(submake) TESTPOINTS=1 $(O)/testpoints/r3ringd $(POINTED)

# Each for as long as it takes by itself; the kills KILLS times, from SEED on; engines on
# a stand-in GPU with CUDA_SEEDS seeds (300).
.PHONY: stress
stress: $(call packages,build) $(call packages,test)
	+$(Q)$(submake) $(STRESS) $(O)/r3ringd $(FAKE)/tests/run-cuda killed
	$(Q)R3RING_CUDA_SEEDS=$(or $(CUDA_SEEDS),300) $(FAKE)/tests/run-cuda -j$(JOBS) \
		--filter 'cuda_seeds/*'
	$(Q)for program in $(filter-out $(POINTED:$(O)/testpoints/%=$(O)/%),$(STRESS)) $(POINTED); do \
		echo $$program; KILLS=$(KILLS) SEED=$(SEED) SIM_SEEDS=$(or $(SIM_SEEDS),2000) $$program || exit 1; done

# On a machine with a GPU; elsewhere they say that they are skipped.
.PHONY: gpu-test gpu-bench
gpu-test gpu-bench: $(call packages,build) $(call packages,test)
ifeq ($(CUDA),yes)
	+$(Q)$(submake) $(O)/tests/run-gpu $(O)/tests/bench-gpu
	$(Q)tests/gpu/run.sh $(O) $(@:gpu-%=%)
else
	@echo 'skipped: no CUDA toolkit to build it with (CUDA_HOME says where one is)'
endif

# Criterion does not work with ThreadSanitizer; the race tests are programs of their own.
.PHONY: check-asan check-ubsan check-tsan
check-asan: SANITIZER := address
check-ubsan: SANITIZER := undefined
check-tsan: SANITIZER := thread
check-asan check-ubsan check-tsan:
	+$(Q)$(submake) test-sanitized SAN=$(SANITIZER)

.PHONY: test-sanitized
test-sanitized: $(call packages,build) $(call packages,test)
	+$(Q)build=ok; $(submake) -k build || build=failed; \
	tests/run $(O) $$build $(if $(filter thread,$(SAN)),stress,unit system cuda)

# Grace: built with Debian's cross compiler, the unit tests run under qemu-user. The
# libraries are unpacked below BUILD, nothing of arm64 is installed.
ARM := $(BUILD)/aarch64
ARM_ROOT := $(CURDIR)/$(ARM)/sysroot
ARM_CC := aarch64-linux-gnu-gcc --sysroot=$(ARM_ROOT)
ARM_RACES := $(addprefix $(ARM)/tests/stress/,ring_race lane_race sleep_wake lossless_threads \
	segment_changing record_changing capture_streams load_readers \
	signature_readers)

$(ARM)/sysroot/complete: scripts/aarch64-sysroot.sh | $(call packages,aarch64)
	$(call say,APT)
	$(Q)scripts/aarch64-sysroot.sh $(@D) && touch $@

$(ARM)/through_qemu.so: tests/aarch64/through_qemu.c $(ARM)/sysroot/complete
	$(call say,CC)
	$(Q)$(ARM_CC) $(filter-out -MMD -MP,$(R3RING_CFLAGS)) -shared -o $@ $< -ldl

.PHONY: check-aarch64
check-aarch64: $(ARM)/through_qemu.so
	+$(Q)$(submake) CC="$(ARM_CC)" AR=aarch64-linux-gnu-ar BUILD=$(ARM) PACKAGES=no CUDA=no \
		all $(ARM)/tests/run-unit $(ARM_RACES)
	$(Q)tests/aarch64/run $(ARM) $(ARM)/sysroot $(ARM_RACES)

# Spin explores the protocol, Relacy its memory order.
.PHONY: model
model: $(call packages,model)
	$(Q)CXX="$(CXX)" tests/model/run $(O) all

.PHONY: bench
bench: $(call packages,bench)
	+$(Q)$(submake) build
	$(Q)$(O)/tests/run-bench $(BENCH_ARGS)

# What reserving expert capacity is worth, on recorded routing: a recording's header, or an archive.
RECORDING ?= ../shared/data/gptoss20b/gptoss20b_many.json
.PHONY: bench-reserve
bench-reserve: $(call packages,build)
	+$(Q)$(submake) $(O)/tests/bench-worth
	$(Q)$(O)/tests/bench-worth --json $(O)/worth.json $(BENCH_ARGS) $(RECORDING)

# Beside other ways between processes, which need packages that nothing else does.
.PHONY: bench-peers
bench-peers: $(call packages,build) $(call packages,peers)
	+$(Q)$(submake) $(O)/tests/run-peers
	$(Q)$(O)/tests/run-peers --json $(O)/peers.json $(BENCH_ARGS)
	$(Q)tests/bench/peers/report.py --plot $(O)/peers.svg $(O)/peers.json > $(O)/peers.md
	@echo 'results: $(O)/peers.json, a table $(O)/peers.md, a plot $(O)/peers.svg'

# Everything at once for so long; tests run its short form.
MINUTES ?= 10
.PHONY: soak
soak: $(call packages,build)
	+$(Q)$(submake) all $(O)/tests/stress/soak
	$(Q)$(O)/tests/stress/soak $$(($(MINUTES) * 60))

# ---- fuzzing -----------------------------------------------------------
# tests/fuzz/fuzz_X.c with seeds from tests/fuzz/seed_X.c, SECONDS each; what it
# finds grows in BUILD/fuzz/X, a crash is left in BUILD/fuzz.

SECONDS ?= 60
comma := ,
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZED := $(patsubst %.c,$(BUILD)/fuzz/objects/%.o,$(filter-out capture_daemon/main.c,\
	$(wildcard $(addsuffix /*.c,$(LIBRARY_DIRS) archive producer/reference capture_daemon \
		tests/support))))
FUZZ_MAINS := $(patsubst %.c,$(BUILD)/fuzz/objects/%.o,$(wildcard tests/fuzz/*.c))
FUZZ_SANITIZERS := address,undefined
FUZZ_CFLAGS := -std=gnu11 $(R3RING_CPPFLAGS) -O1 -g -MMD -MP -fno-sanitize-recover=all \
	-fsanitize=fuzzer-no-link,$(FUZZ_SANITIZERS)

$(FUZZED) $(FUZZ_MAINS): $(BUILD)/fuzz/objects/%.o: %.c | $(call packages,lint)
	@printf '  %-7s %s\n' CLANG fuzz/$*.o
	@mkdir -p $(@D)
	$(Q)clang $(FUZZ_CFLAGS) -c -o $@ $<

$(BUILD)/fuzz/libfuzzed.a: $(FUZZED)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

fuzz-link = $(Q)clang -o $@ $^ -fsanitize=$(1)$(FUZZ_SANITIZERS) -pthread $(PROGRAM_LIBS)

$(BUILD)/fuzz/fuzz_%: $(BUILD)/fuzz/objects/tests/fuzz/fuzz_%.o $(BUILD)/fuzz/libfuzzed.a
	$(call fuzz-link,fuzzer$(comma))

$(BUILD)/fuzz/seed_%: $(BUILD)/fuzz/objects/tests/fuzz/seed_%.o $(BUILD)/fuzz/libfuzzed.a
	$(call fuzz-link)

# What the code under test says goes nowhere, else it would be most of the work.
.PHONY: fuzz
fuzz: $(call packages,lint)
	+$(Q)$(submake) $(FUZZERS:%=$(BUILD)/fuzz/fuzz_%) $(FUZZERS:%=$(BUILD)/fuzz/seed_%)
	$(Q)for fuzzer in $(FUZZERS); do \
		mkdir -p $(BUILD)/fuzz/$$fuzzer && \
		$(BUILD)/fuzz/seed_$$fuzzer $(BUILD)/fuzz/$$fuzzer && \
		$(BUILD)/fuzz/fuzz_$$fuzzer -max_total_time=$(SECONDS) -max_len=65536 \
			-close_fd_mask=2 -print_funcs=0 -artifact_prefix=$(BUILD)/fuzz/ \
			$(BUILD)/fuzz/$$fuzzer || exit 1; done

-include $(FUZZED:.o=.d) $(FUZZ_MAINS:.o=.d)

# ---- checking the text -------------------------------------------------

FORMATTED = $(shell git ls-files '*.c' '*.h' '*.cu')

.PHONY: format
format: $(call packages,lint)
	$(Q)clang-format -i $(FORMATTED)

.PHONY: format-check
format-check: $(call packages,lint)
	$(Q)clang-format --dry-run -Werror $(FORMATTED)

.PHONY: lint
lint: $(call packages,lint) $(call packages,build) $(call packages,test) compile_commands.json
	$(Q)scripts/lint.sh $(JOBS)

.PHONY: house-rules
house-rules:
	$(Q)scripts/house-rules.sh

.PHONY: docs
docs:
	$(Q)scripts/check-docs.sh $(O)/docs

compile_commands.json: force
	$(Q){ sep='['; for source in $(SOURCES); do \
		printf '%s\n{ "directory": "%s", "file": "%s", "command": "%s -c %s" }' "$$sep" \
			"$(CURDIR)" "$$source" \
			'$(subst ",\",$(subst ','\'',$(CC) $(filter-out -MMD -MP,$(R3RING_CFLAGS))))' \
			"$$source"; sep=','; done; printf '\n]\n'; } > $@

# ---- installing --------------------------------------------------------

INSTALLED = $(addprefix $(BINDIR)/,$(notdir $(PROGRAMS))) \
	$(addprefix $(LIBDIR)/,libr3ring.a libr3ring.so libr3ring.so.$(SOVERSION) \
		libr3ring.so.$(VERSION) pkgconfig/r3ring.pc) \
	$(addprefix $(INCLUDEDIR)/r3ring/,$(notdir $(HEADERS))) \
	$(foreach page,$(MANUALS),$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(notdir $(page))) \
	$(UNITDIR)/r3ringd.service $(addprefix $(DATADIR)/r3ring/,$(notdir $(SHARED)))
fill = sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' \
	-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' -e 's|@BINDIR@|$(BINDIR)|g' \
	-e 's|@CUDA_LIBS@|$(CUDA_LIBS)|g'

.PHONY: install
install: all
	$(Q)install -d $(sort $(dir $(addprefix $(DESTDIR),$(INSTALLED))))
	$(Q)install -m 755 $(PROGRAMS) $(DESTDIR)$(BINDIR)/
	$(Q)install -m 644 $(O)/libr3ring.a $(DESTDIR)$(LIBDIR)/
	$(Q)install -m 755 $(O)/libr3ring.so.$(VERSION) $(DESTDIR)$(LIBDIR)/
	$(Q)cp -P $(O)/libr3ring.so.$(SOVERSION) $(O)/libr3ring.so $(DESTDIR)$(LIBDIR)/
	$(Q)install -m 644 $(HEADERS) $(DESTDIR)$(INCLUDEDIR)/r3ring/
	$(Q)$(fill) r3ring.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/r3ring.pc
	$(Q)$(fill) capture_daemon/r3ringd.service.in > $(DESTDIR)$(UNITDIR)/r3ringd.service
	$(Q)install -m 644 $(SHARED) $(DESTDIR)$(DATADIR)/r3ring/
	$(Q)for page in $(MANUALS); do \
		install -m 644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/ || exit 1; done

.PHONY: uninstall
uninstall:
	$(Q)rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	$(Q)for folder in $(INCLUDEDIR) $(DATADIR); do \
		rmdir $(DESTDIR)$$folder/r3ring 2>/dev/null; done; true

# ---- the rest ----------------------------------------------------------

.PHONY: clean
clean:
	rm -rf $(BUILD) compile_commands.json

.PHONY: help
help:
	@echo 'all            library and programs (the default)'
	@echo 'demo           shows everything at work, and checks it'
	@echo 'test           all tests'
	@echo 'check-asan     unit and system tests with AddressSanitizer'
	@echo 'check-ubsan    unit and system tests with UndefinedBehaviorSanitizer'
	@echo 'check-tsan     race tests with ThreadSanitizer'
	@echo 'check-aarch64  builds for arm64 and runs the unit tests under qemu-user'
	@echo 'gpu-test       tests on a real GPU; gpu-bench measures there'
	@echo 'stress         race tests, KILLS=100 kills at every point of the code, and engines on'
	@echo '               a stand-in GPU with CUDA_SEEDS=300 seeds'
	@echo 'model          explores models of the protocol, and mutants, which must fail'
	@echo 'fuzz           feeds decoders and readers nonsense, SECONDS=60 each'
	@echo 'soak           everything at once, for MINUTES=10, with exact accounts at the end'
	@echo 'bench          measures, beside the floors of this machine'
	@echo 'bench-peers    measures the ring beside DPDK, iceoryx, ZeroMQ, Redis and others'
	@echo 'bench-reserve  measures what reserving expert capacity is worth, on RECORDING'
	@echo 'build          all, tests and benchmarks, without running them'
	@echo 'format         formats the C files'
	@echo 'format-check   says which are not formatted'
	@echo 'lint           static analysis and house rules; house-rules: these alone'
	@echo 'docs           renders the manual pages, checks them and all links'
	@echo 'install        to PREFIX (/usr/local), below DESTDIR'
	@echo 'uninstall      removes exactly what install put there'
	@echo 'compile_commands.json  for editors and clang tools'
	@echo 'clean          removes what was built'
	@echo
	@echo 'V=1 shows commands; CI=1 makes warnings errors; SAN=address|undefined|thread;'
	@echo 'BUILD=dir; CC=clang; PACKAGES=no installs no packages; CUDA=no leaves CUDA out.'
