/* SPDX-License-Identifier: GPL-2.0 */
/* The few list calls that proto/ uses, under the kernel's names. */
#ifndef PROTO_TEST_LIST_H
#define PROTO_TEST_LIST_H

#include <stddef.h>

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline int list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline int list_is_singular(const struct list_head *head)
{
	return head->next != head && head->next == head->prev;
}

static inline int list_is_last(const struct list_head *node, const struct list_head *head)
{
	return node->next == head;
}

static inline void list_add_tail(struct list_head *node, struct list_head *head)
{
	node->next = head;
	node->prev = head->prev;
	node->prev->next = node;
	head->prev = node;
}

static inline void list_del_init(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	INIT_LIST_HEAD(node);
}

/* As in the kernel: the node may be off every list, initialised. */
static inline void list_move_tail(struct list_head *node, struct list_head *head)
{
	list_del_init(node);
	list_add_tail(node, head);
}

#define list_entry(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
#define list_last_entry(head, type, member) list_entry((head)->prev, type, member)
#define list_first_entry(head, type, member) \
	list_entry((head)->next, type, member)
#define list_first_entry_or_null(head, type, member) \
	(list_empty(head) ? NULL : list_entry((head)->next, type, member))
#define list_next_entry(pos, member) \
	list_entry((pos)->member.next, __typeof__(*(pos)), member)
#define list_for_each_entry(pos, head, member) \
	for (pos = list_entry((head)->next, __typeof__(*pos), member); \
	     &pos->member != (head); pos = list_next_entry(pos, member))
#define list_for_each_entry_safe(pos, tmp, head, member) \
	for (pos = list_entry((head)->next, __typeof__(*pos), member), \
	     tmp = list_next_entry(pos, member); &pos->member != (head); \
	     pos = tmp, tmp = list_next_entry(tmp, member))

#endif
