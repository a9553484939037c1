package report

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// never is what Never is in JSON.
const never = "never"

// openDepth is how deep objects and arrays stand on lines of their own; deeper ones
// are written in one line.
const openDepth = 5

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
	pointType    = reflect.TypeFor[Point]()
)

// WriteJSON writes the run as JSON. [ReadJSON] reads it.
//
// Names are those of the fields, with a small first letter. Durations are numbers of
// seconds, exact to the nanosecond, or "never".
func (r Run) WriteJSON(w io.Writer) error {
	e := encoder{}
	e.value(reflect.ValueOf(r), 0)
	_, err := w.Write(append(e.out, '\n'))
	return err
}

// encoder writes the model as it is: encoding/json would write a duration as a number
// of nanoseconds, and Never as a number that looks like one.
type encoder struct{ out []byte }

func (e *encoder) value(v reflect.Value, depth int) {
	switch v.Type() {
	case durationType:
		e.out = appendSeconds(e.out, time.Duration(v.Int()))
		return
	case timeType:
		e.text(v.Interface().(time.Time).Format(time.RFC3339Nano))
		return
	case pointType:
		p := v.Interface().(Point)
		e.out = append(appendSeconds(append(e.out, '['), p.At), ',')
		e.out = append(strconv.AppendInt(e.out, int64(p.N), 10), ']')
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		e.list('{', '}', v.NumField(), depth, func(i int) {
			e.key(fieldName(v.Type().Field(i)))
			e.value(v.Field(i), depth+1)
		})
	case reflect.Slice:
		e.list('[', ']', v.Len(), depth, func(i int) { e.value(v.Index(i), depth+1) })
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		e.list('{', '}', len(keys), depth, func(i int) {
			e.key(keys[i].String())
			e.value(v.MapIndex(keys[i]), depth+1)
		})
	case reflect.String:
		e.text(v.String())
	case reflect.Bool:
		e.out = strconv.AppendBool(e.out, v.Bool())
	case reflect.Int, reflect.Int64:
		e.out = strconv.AppendInt(e.out, v.Int(), 10)
	default:
		panic("report: the model holds a " + v.Type().String() + ", which is not written yet")
	}
}

// list writes n items between two brackets.
func (e *encoder) list(open, end byte, n, depth int, item func(i int)) {
	e.out = append(e.out, open)
	for i := range n {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.line(depth, depth+1)
		item(i)
	}
	if n > 0 {
		e.line(depth, depth)
	}
	e.out = append(e.out, end)
}

func (e *encoder) line(depth, indent int) {
	if depth < openDepth {
		e.out = append(e.out, '\n')
		e.out = append(e.out, strings.Repeat(" ", indent)...)
	}
}

func (e *encoder) key(s string) {
	e.text(s)
	e.out = append(e.out, ':')
}

func (e *encoder) text(s string) {
	b, err := json.Marshal(s) // never fails on a string
	if err != nil {
		panic(err)
	}
	e.out = append(e.out, b...)
}

func appendSeconds(b []byte, d time.Duration) []byte {
	if d == Never {
		return strconv.AppendQuote(b, never)
	}
	sign, n := "", uint64(d)
	if d < 0 {
		sign, n = "-", -n
	}
	s := strings.TrimRight(fmt.Sprintf("%s%d.%09d", sign, n/1e9, n%1e9), "0")
	return append(b, strings.TrimSuffix(s, ".")...)
}

func fieldName(f reflect.StructField) string {
	return strings.ToLower(f.Name[:1]) + f.Name[1:]
}

// ReadJSON reads what [Run.WriteJSON] has written. Fields that it does not know are
// passed over, so that a newer file can be read; missing ones are zero.
func ReadJSON(from io.Reader) (Run, error) {
	d := json.NewDecoder(from)
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return Run{}, fmt.Errorf("report: not a report in JSON: %w", err)
	}
	var r Run
	if err := assign(reflect.ValueOf(&r).Elem(), tree, "run"); err != nil {
		return Run{}, fmt.Errorf("report: not a report in JSON: %w", err)
	}
	return r, nil
}

// assign puts what stands at a path of the file into v.
func assign(v reflect.Value, tree any, path string) error {
	switch v.Type() {
	case durationType:
		return assignDuration(v, tree, path)
	case timeType:
		s, ok := tree.(string)
		at, err := time.Parse(time.RFC3339Nano, s)
		if !ok || err != nil {
			return wrong(path, tree, "a time")
		}
		v.Set(reflect.ValueOf(at))
		return nil
	case pointType:
		pair, ok := tree.([]any)
		if !ok || len(pair) != 2 {
			return wrong(path, tree, "a pair of seconds and number")
		}
		if err := assign(v.Field(0), pair[0], path); err != nil {
			return err
		}
		return assign(v.Field(1), pair[1], path)
	}
	switch v.Kind() {
	case reflect.Struct:
		return assignStruct(v, tree, path)
	case reflect.Slice:
		return assignSlice(v, tree, path)
	case reflect.Map:
		return assignMap(v, tree, path)
	case reflect.String:
		s, ok := tree.(string)
		if !ok {
			return wrong(path, tree, "a text")
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := tree.(bool)
		if !ok {
			return wrong(path, tree, "true or false")
		}
		v.SetBool(b)
	default:
		n, ok := tree.(json.Number)
		i, err := n.Int64()
		if !ok || err != nil {
			return wrong(path, tree, "a whole number")
		}
		v.SetInt(i)
	}
	return nil
}

func assignStruct(v reflect.Value, tree any, path string) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return wrong(path, tree, "an object")
	}
	for i := range v.NumField() {
		name := fieldName(v.Type().Field(i))
		if t, ok := object[name]; ok {
			if err := assign(v.Field(i), t, path+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

func assignSlice(v reflect.Value, tree any, path string) error {
	array, ok := tree.([]any)
	if !ok {
		return wrong(path, tree, "an array")
	}
	if len(array) == 0 {
		return nil // nil and empty are the same
	}
	s := reflect.MakeSlice(v.Type(), len(array), len(array))
	for i, t := range array {
		if err := assign(s.Index(i), t, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	v.Set(s)
	return nil
}

func assignMap(v reflect.Value, tree any, path string) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return wrong(path, tree, "an object")
	}
	if len(object) == 0 {
		return nil
	}
	m := reflect.MakeMapWithSize(v.Type(), len(object))
	for name, t := range object {
		item := reflect.New(v.Type().Elem()).Elem()
		if err := assign(item, t, path+"."+name); err != nil {
			return err
		}
		m.SetMapIndex(reflect.ValueOf(name), item)
	}
	v.Set(m)
	return nil
}

func assignDuration(v reflect.Value, tree any, path string) error {
	if tree == never {
		v.SetInt(int64(Never))
		return nil
	}
	n, ok := tree.(json.Number)
	if !ok {
		return wrong(path, tree, `seconds or "never"`)
	}
	d, err := time.ParseDuration(n.String() + "s")
	if err != nil {
		return wrong(path, tree, `seconds or "never"`)
	}
	v.SetInt(int64(d))
	return nil
}

func wrong(path string, got any, want string) error {
	s := fmt.Sprint(got)
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "..."
	}
	return fmt.Errorf("%s is %s; it must be %s", path, strings.ToValidUTF8(s, ""), want)
}
