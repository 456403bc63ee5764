package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	ordersPerTick = 8
	cacheBytes    = 200 << 20
)

type Order struct {
	ID       int      `json:"id"`
	Customer string   `json:"customer"`
	Lines    []Line   `json:"lines"`
	Notes    []string `json:"notes"`
}

type Line struct {
	Article string  `json:"article"`
	Count   int     `json:"count"`
	Price   float64 `json:"price"`
}

type OrderService struct {
	cache    *Cache
	sessions map[string]*Session
	nextID   int
}

type Session struct {
	Customer string
	History  []int
	Basket   []byte
}

func NewOrderService() *OrderService {
	return &OrderService{cache: NewCache(cacheBytes), sessions: make(map[string]*Session)}
}

// Run handles a few orders at every tick: some megabytes a second.
func (s *OrderService) Run(ticks <-chan time.Time) {
	for range ticks {
		for i := 0; i < ordersPerTick; i++ {
			s.nextID++
			s.handleOrder(s.nextID)
		}
	}
}

func (s *OrderService) handleOrder(id int) {
	order := decodeOrder(encodeRequest(id))
	session := s.openSession(order.Customer)
	session.remember(order)
	// Whoever wrote this meant to keep invoices for a minute, and forgot to expire them.
	s.cache.Put(fmt.Sprintf("invoice/%d", order.ID), renderInvoice(order))
	auditTrail(order)
}

func (s *OrderService) openSession(customer string) *Session {
	session := s.sessions[customer]
	if session == nil {
		session = &Session{Customer: customer, Basket: make([]byte, 2<<10)}
		s.sessions[customer] = session
	}
	return session
}

func (s *Session) remember(order *Order) {
	s.History = append(s.History, order.ID)
	if len(s.History) > 1000 {
		s.History = append([]int(nil), s.History[500:]...)
	}
}

func encodeRequest(id int) []byte {
	order := Order{ID: id, Customer: fmt.Sprintf("customer-%03d", id%500)}
	for i := 0; i < 3+id%5; i++ {
		order.Lines = append(order.Lines, Line{fmt.Sprintf("article-%d", i*7), i + 1, 9.95})
	}
	order.Notes = append(order.Notes, strings.Repeat("please ring twice ", 20))
	request, err := json.Marshal(order)
	if err != nil {
		panic(err)
	}
	return request
}

func decodeOrder(request []byte) *Order {
	order := new(Order)
	if err := json.Unmarshal(request, order); err != nil {
		panic(err)
	}
	return order
}

func renderInvoice(order *Order) []byte {
	var page bytes.Buffer
	fmt.Fprintf(&page, "<h1>Invoice %d for %s</h1>\n", order.ID, order.Customer)
	for _, line := range order.Lines {
		renderLine(&page, line)
	}
	page.WriteString(strings.Repeat("<!-- terms and conditions -->\n", 100))
	return page.Bytes()
}

func renderLine(page *bytes.Buffer, line Line) {
	fmt.Fprintf(page, "<tr><td>%s<td>%d<td>%.2f\n", line.Article, line.Count, line.Price)
}

func auditTrail(order *Order) {
	record := make([]string, 0, len(order.Lines))
	for _, line := range order.Lines {
		record = append(record, order.Customer+" bought "+line.Article)
	}
	lastAudit = strings.Join(record, "; ")
}

var lastAudit string
