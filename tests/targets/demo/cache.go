package main

// Cache keeps pages by key until it is full, and then drops the oldest.
type Cache struct {
	entries map[string]*entry
	order   []string
	bytes   int
	max     int
}

type entry struct {
	page []byte
	hits int
}

func NewCache(max int) *Cache {
	return &Cache{entries: make(map[string]*entry), max: max}
}

// Put stores page under key.
func (c *Cache) Put(key string, page []byte) {
	c.entries[key] = &entry{page: page}
	c.order = append(c.order, key)
	c.bytes += cap(page)
	for c.bytes > c.max {
		c.evictOldest()
	}
}

func (c *Cache) evictOldest() {
	oldest := c.order[0]
	c.bytes -= cap(c.entries[oldest].page)
	delete(c.entries, oldest)
	c.order = c.order[1:]
}
