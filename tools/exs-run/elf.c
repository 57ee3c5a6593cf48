// SPDX-License-Identifier: MIT
/* Finds out from a program's file whether the dynamic linker will preload a library. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "run.h"

/* Of our own word size. For other sizes, the beginning of the header is enough. */
#define EHDR		ElfW(Ehdr)
#define PHDR		ElfW(Phdr)
#define SHDR		ElfW(Shdr)
#define SCRIPTS_MAX	5	/* scripts that run scripts */
#define LINKER_MAX	256	/* on small stacks, too: execve() in signal handlers */

static bool read_at(int fd, void *buf, size_t len, off_t offset)
{
	return pread(fd, buf, len, offset) == (ssize_t)len;
}

static bool read_linker(int fd, const PHDR *p, char *linker, size_t room)
{
	return p->p_filesz && p->p_filesz <= room &&
	       read_at(fd, linker, p->p_filesz, p->p_offset) && !linker[p->p_filesz - 1];
}

/* The dynamic linker of a program, "": none. Return: false: no such file. */
static bool find_linker(int fd, const EHDR *e, char *linker, size_t room)
{
	PHDR p;
	int i;

	*linker = 0;
	for (i = 0; i < e->e_phnum; i++) {
		if (!read_at(fd, &p, sizeof(p), e->e_phoff + i * sizeof(p)))
			return false;
		if (p.p_type == PT_INTERP)
			return read_linker(fd, &p, linker, room);
	}
	return true;
}

static bool is_named(int fd, const SHDR *names, const SHDR *s, const char *name)
{
	char text[32];
	size_t len = strlen(name) + 1;

	return s->sh_name < names->sh_size && len <= names->sh_size - s->sh_name &&
	       read_at(fd, text, len, names->sh_offset + s->sh_name) && !memcmp(text, name, len);
}

/* Go's programs make their system calls themselves, also where they have a dynamic linker. */
static bool is_go(int fd, const EHDR *e)
{
	SHDR names, s;
	int i;

	if (e->e_shstrndx >= e->e_shnum ||
	    !read_at(fd, &names, sizeof(names), e->e_shoff + e->e_shstrndx * sizeof(names)))
		return false;
	for (i = 0; i < e->e_shnum; i++)
		if (read_at(fd, &s, sizeof(s), e->e_shoff + i * sizeof(s)) &&
		    is_named(fd, &names, &s, ".go.buildinfo"))
			return true;
	return false;
}

static bool open_elf(const char *path, int *fd, EHDR *e)
{
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return *fd >= 0 && read_at(*fd, e, sizeof(*e), 0) &&
	       !memcmp(e->e_ident, ELFMAG, SELFMAG);
}

/* Programs for another machine or C library have another linker. */
static const char *look_at(int fd, const EHDR *e)
{
	static const char other[] = "its dynamic linker is not that of exs-run";
	char linker[LINKER_MAX], ours[LINKER_MAX];
	EHDR own;
	const char *why = NULL;
	int self;

	if (!open_elf("/proc/self/exe", &self, &own) ||
	    !find_linker(self, &own, ours, sizeof(ours)))
		why = "exs-run cannot read itself";
	else if (e->e_ident[EI_CLASS] != own.e_ident[EI_CLASS] || e->e_machine != own.e_machine)
		why = other;
	else if (!find_linker(fd, e, linker, sizeof(linker)))
		why = "its format is unknown to exs-run";
	else if (!*linker)
		why = "it is statically linked";
	else if (is_go(fd, e))
		why = "it is written in Go";
	else if (strcmp(basename(linker), basename(ours)))
		why = other;
	if (self >= 0)
		close(self);
	return why;
}

/* If a program has more rights than its caller, the linker preloads nothing. */
static const char *look_at_rights(int fd)
{
	struct stat st;
	struct statvfs fs;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || fstat(fd, &st) ||
	    (!fstatvfs(fd, &fs) && fs.f_flag & ST_NOSUID))
		return NULL;
	if (st.st_mode & S_ISUID && st.st_uid != getuid())
		return "it is set-user-ID";
	if (st.st_mode & S_ISGID && st.st_mode & 0010 && st.st_gid != getgid())
		return "it is set-group-ID";
	if (getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return "it has file capabilities";
	return NULL;
}

/* Find the interpreter of a script. Return: false: not a script. */
static bool read_interpreter(int fd, char *path, size_t room)
{
	char line[256], *word;
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);

	if (n < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	word = line + 2 + strspn(line + 2, " \t");
	word[strcspn(word, " \t")] = 0;
	if (!*word || strlen(word) >= room)
		return false;
	strcpy(path, word);
	return true;
}

const char *why_no_preload(const char *path)
{
	char interpreter[256];
	const char *why;
	EHDR e;
	int i, fd;

	for (i = 0; i < SCRIPTS_MAX; i++) {
		bool is_elf = open_elf(path, &fd, &e), more;

		if (fd < 0)
			return NULL;	/* it may be executable but not readable: execve() decides */
		if (is_elf) {
			why = look_at(fd, &e) ?: look_at_rights(fd);
			close(fd);
			return why;
		}
		more = read_interpreter(fd, interpreter, sizeof(interpreter));
		close(fd);
		if (!more)
			break;
		path = interpreter;
	}
	return NULL;
}

const char *find_program(const char *name, char *path, size_t room)
{
	const char *dirs = getenv("PATH") ?: "/bin:/usr/bin";
	struct stat st;
	size_t len;

	if (strchr(name, '/'))
		return name;
	for (; *dirs; dirs += len + !!dirs[len]) {
		len = strcspn(dirs, ":");
		snprintf(path, room, "%.*s%s%s", (int)len, dirs, len ? "/" : "./", name);
		if (!faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) && !stat(path, &st) && S_ISREG(st.st_mode))
			return path;
	}
	return name;
}
