# The C that svc-init and svc-host are written in, and how both are hardened. Included by their Makefiles.

ifeq ($(origin CC),default)
CC := $(CROSS)gcc
endif
BUILD := build$(if $(CROSS),/$(CROSS:-=))
TARGET := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))

# Includes name files from the root of the sources.
DIALECT := -std=gnu17 -D_GNU_SOURCE -iquote src
WARNINGS := -Wall -Wextra -Werror -Wshadow -Wvla -Wundef -Wstrict-prototypes -Wmissing-prototypes -Wformat=2
# Where a jump may land is the processor's to check, and each kind has its own option for it.
BRANCHES_x86_64 := -fcf-protection
BRANCHES_aarch64 := -mbranch-protection=standard
HARDENING := -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=2 -fno-common -fno-strict-aliasing -fPIE $(BRANCHES_$(TARGET))
LINKING := -static-pie -s -Wl,-z,relro,-z,now,-z,noexecstack
SANITIZED := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
