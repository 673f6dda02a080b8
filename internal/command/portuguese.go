package command

import "github.com/paghooks/paghooks/internal/lang"

// portuguese holds the texts of all commands.
var portuguese = lang.Catalog{
	"usage: %s VERB [flags]":               "uso: %s VERBO [flags]",
	"usage: %s [flags] %s":                 "uso: %s [flags] %s",
	"Verbs:":                               "Verbos:",
	"help VERB":                            "help VERBO",
	"all about a verb":                     "tudo sobre um verbo",
	"the version of this program":          "a versão deste programa",
	"Flags of every verb, also before it:": "Flags de todos os verbos, também antes deles:",
	"Flags:":                               "Flags:",
	"Environment:":                         "Ambiente:",
	"Exit status:":                         "Código de saída:",
	" (default %s)":                        " (padrão: %s)",

	"done": "feito",
	"not done, or not all of it: stderr says why, and what was changed": "não feito, ou não por inteiro: stderr diz por que e o que mudou",
	"used in a wrong way: nothing was done":                             "usado de forma errada: nada foi feito",
	"nothing matched: nothing was done":                                 "nada corresponde: nada foi feito",
	"done, and what was found needs somebody":                           "feito, e o que foi encontrado precisa de alguém",
	"ended by Ctrl-C before it was done; 143 by SIGTERM, 129 by SIGHUP": "encerrado por Ctrl-C antes do fim; 143 por SIGTERM, 129 por SIGHUP",
}
