package wire

import (
	"reflect"

	"go.fd.io/govpp/api"
)

// RetvalReply makes a reply of the given type that carries only a return code.
func RetvalReply(typ reflect.Type, retval int32) api.Message {
	v := reflect.New(typ)
	v.Elem().FieldByName("Retval").SetInt(int64(retval))
	msg, _ := v.Interface().(api.Message)
	return msg
}

// RetvalOf returns the return code of a reply, and whether it has one.
func RetvalOf(msg api.Message) (int32, bool) {
	f := reflect.ValueOf(msg).Elem().FieldByName("Retval")
	if !f.IsValid() || f.Kind() != reflect.Int32 {
		return 0, false
	}
	return int32(f.Int()), true
}
