package policy
import ("testing";"fmt";"os";"strings")
func TestZZ(t *testing.T){
 b,_:=os.ReadFile("/tmp/ps/cmds.txt")
 for _,l:=range strings.Split(strings.TrimSpace(string(b)),"\n"){
  s:=Analyze(strings.ReplaceAll(l,"\\n","\n"))
  fmt.Printf("%-6s %-60s %v %v\n",s.Risk,l,s.Findings,s.Effects)
 }
}
