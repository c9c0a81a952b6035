# xpusim: everything is built out of tree under build/.
CC ?= gcc
BUILD ?= build
WARN = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wdouble-promotion -Wundef -Wvla \
       -Wmissing-prototypes -Wstrict-prototypes -Wwrite-strings
WERROR ?= -Werror
OPT ?= -O2
CPPFLAGS += -I. -D_POSIX_C_SOURCE=200809L
CFLAGS += -std=c17 $(OPT) -g -ffp-contract=off $(WARN) $(WERROR) $(XCFLAGS)
PKGS = gsl libcjson sqlite3
LDLIBS = $(shell pkg-config --libs $(PKGS)) -lcsv -lpthread -ldl -lm
CHECK_LIBS = $(shell pkg-config --libs check)

DIRS = sim policies hwmodels traces experiments
SRC = $(foreach d,$(DIRS),$(wildcard $(d)/*.c $(d)/*/*.c))
OBJ = $(SRC:%.c=$(BUILD)/%.o)
LIB_OBJ = $(filter-out $(BUILD)/experiments/main.o,$(OBJ))
HELP_OBJ = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/helpers/*.c))
TESTS = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/check_*.c tests/oracle/check_*.c tests/conformance/check_*.c))

all: $(BUILD)/xpusim
$(BUILD)/xpusim: $(BUILD)/experiments/main.o $(BUILD)/libxpusim.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(BUILD)/libxpusim.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(TESTS): $(BUILD)/%: $(BUILD)/%.o $(HELP_OBJ) $(BUILD)/libxpusim.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) $(LDLIBS)
tests: $(TESTS)
clean:
	rm -rf $(BUILD)
-include $(OBJ:.o=.d) $(HELP_OBJ:.o=.d) $(TESTS:=.d)
.SECONDARY:
.PHONY: all tests clean
