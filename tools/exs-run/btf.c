// SPDX-License-Identifier: MIT
/* The kernel's own description of its types and functions. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/btf.h>

#include "run.h"

#define VMLINUX	"/sys/kernel/btf/vmlinux"
#define ENUM64	19	/* BTF_KIND_ENUM64: newer than some headers */

struct btf {
	char *all;
	size_t len;
};

/* The bytes that follow a type's header. */
static size_t rest_of(const struct btf_type *t)
{
	size_t vlen = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(__u32);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return vlen * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return vlen * sizeof(struct btf_enum);
	case BTF_KIND_FUNC_PROTO:
		return vlen * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return vlen * sizeof(struct btf_var_secinfo);
	case ENUM64:
		return vlen * 3 * sizeof(__u32);
	default:
		return 0;
	}
}

static int find(const struct btf *btf, const char *name)
{
	const struct btf_header *h = (void *)btf->all;
	const char *types = btf->all + h->hdr_len + h->type_off;
	const char *names = btf->all + h->hdr_len + h->str_off;
	size_t at = 0;
	int id;

	for (id = 1; at + sizeof(struct btf_type) <= h->type_len; id++) {
		const struct btf_type *t = (void *)(types + at);

		if (BTF_INFO_KIND(t->info) == BTF_KIND_FUNC && !strcmp(names + t->name_off, name))
			return id;
		at += sizeof(*t) + rest_of(t);
	}
	return 0;
}

static bool read_all(int fd, struct btf *btf)
{
	size_t have = 0;
	ssize_t n;

	while (have < btf->len) {
		n = read(fd, btf->all + have, btf->len - have);
		if (n <= 0)
			return false;
		have += n;
	}
	return ((struct btf_header *)btf->all)->magic == BTF_MAGIC;
}

int btf_function(const char *name)
{
	int fd = open(VMLINUX, O_RDONLY | O_CLOEXEC), id = -1;
	struct btf btf = { NULL, 0 };
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && st.st_size > (off_t)sizeof(struct btf_header)) {
		btf.len = st.st_size;
		btf.all = malloc(btf.len);
	}
	errno = EINVAL;
	if (btf.all && read_all(fd, &btf))
		id = find(&btf, name);
	free(btf.all);
	close(fd);
	return id;
}
