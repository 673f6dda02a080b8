package health_test

import (
	"fmt"
	"log"
	"net"
	"net/textproto"
	"strings"
)

// listenForMail starts a mail server on this machine for one connection, and returns its address. It prints what it
// gets, but for the password.
func listenForMail() (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		defer listener.Close()
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		defer conn.Close()
		talk(textproto.NewConn(conn))
	}()
	return listener.Addr().String()
}

// talk is the server's part of a conversation.
func talk(c *textproto.Conn) {
	_ = c.PrintfLine("220 mail.example")
	for {
		line, err := c.ReadLine()
		if err != nil {
			return
		}
		switch verb, _, _ := strings.Cut(line, " "); verb {
		case "EHLO":
			_ = c.PrintfLine("250-mail.example\r\n250-8BITMIME\r\n250 AUTH PLAIN")
		case "AUTH":
			fmt.Println("AUTH PLAIN")
			_ = c.PrintfLine("235 welcome")
		case "DATA":
			_ = c.PrintfLine("354 go on")
			lines, _ := c.ReadDotLines()
			fmt.Println(strings.Join(lines, "\n"))
			_ = c.PrintfLine("250 accepted")
		case "QUIT":
			_ = c.PrintfLine("221 bye")
			return
		default:
			fmt.Println(line)
			_ = c.PrintfLine("250 fine")
		}
	}
}
