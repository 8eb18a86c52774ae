package main
import ("testing";"context";"fmt";"time";"sort"
"go.temporal.io/api/enums/v1")
func TestZZGap(t *testing.T){
 ctx:=context.Background()
 r,err:=newRig(ctx,t.TempDir()); if err!=nil {t.Fatal(err)}
 defer r.close()
 for _,w:=range []workload{bare,belay,bare,belay}{
 s,err:=r.play(ctx,w,16,16,20); if err!=nil{t.Fatal(err)}
 fmt.Println(w.name,s.wall, s.cpu)
 sum:=map[string]time.Duration{}; n:=map[string]int{}; mx:=map[string]time.Duration{}
 for k:=int64(0);k<16;k++{
  id:=fmt.Sprintf("%s-%d",w.name,r.tasks.Load()-k)
  it:=r.client.GetWorkflowHistory(ctx,id,"",false,enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
  var lt time.Time; ln:=""
  for it.HasNext(){ e,err:=it.Next(); if err!=nil{t.Fatal(err)}
   nm:=e.GetEventType().String()
   if !lt.IsZero(){ d:=e.GetEventTime().AsTime().Sub(lt); key:=ln+">"+nm; sum[key]+=d; n[key]++; if d>mx[key]{mx[key]=d} }
   lt=e.GetEventTime().AsTime(); ln=nm }
 }
 ks:=[]string{}; for k:=range sum{ks=append(ks,k)}
 sort.Slice(ks,func(i,j int)bool{return sum[ks[i]]>sum[ks[j]]})
 for _,k:=range ks[:min(8,len(ks))]{ fmt.Printf("  %-60s total %v n %d mean %v max %v\n",k,sum[k].Round(time.Millisecond),n[k],(sum[k]/time.Duration(n[k])).Round(time.Microsecond*100),mx[k].Round(time.Millisecond)) }
 }
}
